## Tests

TEST_C := $(sort $(wildcard tests/unit/*/test_*.c tests/unit/*/*/test_*.c tests/long/test_*.c))
# It replaces malloc, which a static C library does not permit.
TEST_C := $(filter-out $(if $(filter 1,$(STATIC)),%/test_tiff_memory.c),$(TEST_C))
TEST_UTIL_O := $(patsubst %.c,$(OBJ)/%.o,$(sort $(wildcard tests/support/*.c)))
TESTS := $(patsubst %.c,$(BUILD)/tests/%,$(notdir $(TEST_C)))
TEST_O := $(patsubst %.c,$(OBJ)/%.o,$(wildcard tests/*/*.c tests/*/*/*.c tests/*/*/*/*.c))
$(TEST_O): INCLUDES += -Itests/support
# cmocka passes a state that few tests read; members that a table of cases does not name are zero.
$(TEST_O): WARN += -Wno-unused-parameter -Wno-missing-field-initializers
# Fuzzing harnesses. Each is linked with replay.c, and for `make fuzz` with libFuzzer.
FUZZ_C := $(sort $(wildcard tests/long/fuzz/fuzz_*.c))
FUZZ_UTIL_O := $(patsubst %,$(OBJ)/tests/long/fuzz/%.o,fuzz cli_main)
FUZZERS := $(FUZZ_C:tests/long/fuzz/%.c=$(BUILD)/fuzz/%)
LIBFUZZERS := $(FUZZ_C:tests/long/fuzz/%.c=$(BUILD)/libfuzzer/%)

# The only C files that call the CUDA runtime. -isystem /usr/include would change the order of the system's directories.
ifneq ($(NVCC),)
$(OBJ)/tests/support/device.o $(OBJ)/tests/unit/cuda/test_cuda_fault.o $(OBJ)/tests/unit/cuda/test_device.o $(OBJ)/tests/unit/cuda/test_png_device.o $(OBJ)/tests/unit/cuda/test_png_decode_device.o $(OBJ)/tests/support/tools/hold_memory.o: INCLUDES += $(addprefix -isystem ,$(filter-out /usr/include,$(CUDA_ROOT)/include))
endif

$(BUILD)/gpufilter-mpi: $(CLI_O) $(MPI_O) $(BUILD)/libgpufilter.a
	$(call say,LINK,$@)
	$(Q)$(CC) -pie $(HARDEN_LINK) $(SAN_FLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) $(CLI_LIBS) $(CUDA_LIBS) $(MPI_LIBS)

# The program of the wheel, on a shared library.
$(BUILD)/shared/gpufilter: $(CLI_O) $(BUILD)/shared/libgpufilter.so
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) $(PIE) $(LDFLAGS) -o $@ $(CLI_O) -L$(@D) -lgpufilter $(CLI_LIBS) -Wl,-rpath,'$$ORIGIN'

define TEST_RULE
$(BUILD)/tests/$(notdir $(1)): $(OBJ)/$(1).o $(TEST_UTIL_O) $(BUILD)/libgpufilter.a
	@mkdir -p $$(@D)
	$$(call say,LINK,$$@)
	$$(Q)$$(CC) $$(SAN_FLAGS) $$(PIE) $$(LDFLAGS) -o $$@ $$^ -lcmocka $$(TEST_LIBS) $$(LIBS) $$(CUDA_LIBS)
endef
# The library loads libtiff at run time; these tests call it directly.
$(BUILD)/tests/test_tiff% $(BUILD)/tests/test_hostile_tiff $(BUILD)/tests/test_batch%: TEST_LIBS := -ltiff
$(foreach test,$(TEST_C:.c=),$(eval $(call TEST_RULE,$(test))))

# Harnesses call functions of the program, too.
FUZZ_O = $(FUZZ_UTIL_O) $(TEST_UTIL_O) $(filter-out %/main.o,$(CLI_O)) $(BUILD)/libgpufilter.a
FUZZ_LIBS = -lcmocka -ltiff $(LIBS) $(CLI_LIBS) $(CUDA_LIBS)
$(OBJ)/tests/long/fuzz/cli_main.o: INCLUDES = $(CLI_INCLUDES) -Isrc/cli
$(OBJ)/tests/long/fuzz/cli_main.o: $(HEADERS)

$(BUILD)/fuzz/make_seeds: $(OBJ)/tests/long/fuzz/make_seeds.o $(TEST_UTIL_O) $(BUILD)/libgpufilter.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) $(PIE) $(LDFLAGS) -o $@ $^ $(FUZZ_LIBS)

$(BUILD)/fuzz/corpus: $(BUILD)/fuzz/make_seeds
	$(Q)rm -rf $@ && $(RUN) $< $@ >/dev/null

$(BUILD)/fuzz/%: $(OBJ)/tests/long/fuzz/%.o $(OBJ)/tests/long/fuzz/replay.o $(FUZZ_O)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) $(PIE) $(LDFLAGS) -o $@ $^ $(FUZZ_LIBS)

$(BUILD)/libfuzzer/%: $(OBJ)/tests/long/fuzz/%.o $(FUZZ_O)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) -fsanitize=fuzzer $(LDFLAGS) -o $@ $^ $(FUZZ_LIBS)

$(BUILD)/tests/list_cases: $(OBJ)/tests/support/tools/list_cases.o $(BUILD)/libgpufilter.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) $(PIE) $(LDFLAGS) -o $@ $^ $(LIBS) $(CUDA_LIBS)

$(BUILD)/tests/hold_memory: $(OBJ)/tests/support/tools/hold_memory.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) $(PIE) $(LDFLAGS) -o $@ $^ -lm -pthread $(CUDA_LIBS)

# The program with wrapped library calls that alter the results of backends.
LIES := filter_describe run result_table_count result_table result_cell result_text result_passed
$(BUILD)/tests/liar: $(OBJ)/tests/support/tools/liar.o $(CLI_O) $(BUILD)/libgpufilter.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) $(PIE) $(LDFLAGS) $(LIES:%=-Wl,--wrap=gf_%) -o $@ $^ $(LIBS) $(CLI_LIBS) $(CUDA_LIBS)

# The program with a layer around every call that may fail (tests/long/faults/layer.h). libpng, libjpeg and zlib are
# linked from archives, therefore the layer wraps their calls, too.
FAULT_DEFS := tests/long/faults/calls.def $(if $(NVCC),tests/long/faults/calls_cuda.def)
FAULT_WRAPS = $(shell sed -nE 's/^(CALL|CLOSING|SPECIAL).(\w+),.*/-Wl,--wrap=\2/p' $(FAULT_DEFS))
FAULT_O := $(patsubst %.c,$(OBJ)/%.o,$(wildcard tests/long/faults/*.c))
FAULT_LIBS := $(patsubst -ljpeg,-l:libjpeg.a,$(patsubst -lz,-l:libz.a,$(patsubst -lpng,-l:libpng16.a,$(LIBS))))
$(OBJ)/tests/long/faults/jobs.o: DEFINES += -DGF_CAIRO=$(if $(CAIRO_DIR),1,0)
LAYER_O := $(filter $(OBJ)/tests/long/faults/layer%,$(FAULT_O))
# The CUDA runtime is shared: the layer must not fail the runtime's own allocations.
CUDART_SO := $(firstword $(wildcard $(patsubst %_static.a,%.so,$(filter %/libcudart_static.a,$(CUDA_LIBS)))))
FAULT_CUDA_LIBS := $(if $(CUDART_SO),$(CUDART_SO) -Wl$(comma)-rpath$(comma)$(dir $(CUDART_SO)) $(filter-out %/libcudart_static.a,$(CUDA_LIBS)),$(CUDA_LIBS))
ifneq ($(NVCC),)
$(OBJ)/tests/long/faults/layer_cuda.o: INCLUDES += $(addprefix -isystem ,$(filter-out /usr/include,$(CUDA_ROOT)/include))
endif
$(BUILD)/gpufilter-faults: $(CLI_O) $(LAYER_O) $(BUILD)/libgpufilter.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) $(PIE) $(LDFLAGS) $(FAULT_WRAPS) -o $@ $^ $(FAULT_LIBS) $(CLI_LIBS) $(FAULT_CUDA_LIBS)

$(BUILD)/tests/faults: $(filter-out $(LAYER_O),$(FAULT_O)) $(OBJ)/tests/long/faults/layer_table.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) $(PIE) $(LDFLAGS) -o $@ $^ -lz

# ---- steps of make test-long -----------------------------------------------------------------------

sweeps: all tests ## Run every test in its longest form (T=png)
	@GF_TEST_TIMEOUT=7200 tests/run -t long $(TEST_JOBS) $(BUILD) $(T)

asan tsan: ## Run the tests of `make test` with AddressSanitizer and UBSan, or with ThreadSanitizer
	@$(MAKE) --no-print-directory SAN=$(if $(filter asan,$@),address$(comma)undefined,thread) all tests
	@GF_TEST_TIMEOUT=3600 tests/run $(TEST_JOBS) build/san-$(if $(filter asan,$@),address-undefined,thread)

# ---- other processors ------------------------------------------------------------------------------

ARCHS ?= aarch64 s390x
build-arch:
	@ARCHS='$(ARCHS)' .ci/deps arch $(BUILD)
	@$(MAKE) --no-print-directory $(ALL_CORES) all tests
	@for arch in $(filter-out $(HOST),$(ARCHS)); do $(MAKE) --no-print-directory $(ALL_CORES) ARCH=$$arch BUILD=$(BUILD)/$$arch CC=$$arch-linux-gnu-gcc all tests || exit; done

check-arch: build-arch ## Compare what processors write, all digests and files, under qemu: 15 minutes on 2 cores (ARCHS="aarch64 s390x")
	@tests/system/arch.sh $(BUILD) $(ARCHS)

arch: check-arch ## The same, and run the unit tests of other processors under qemu
	@for arch in $(filter-out $(HOST),$(ARCHS)); do tests/long/arch_units.sh $(BUILD) $$arch || exit; done

# ---- targets ---------------------------------------------------------------------------------------

fuzzers: $(FUZZERS) $(BUILD)/fuzz/corpus
libfuzzers: $(LIBFUZZERS) $(BUILD)/fuzz/corpus

FAULTS := $(BUILD)/gpufilter-faults $(BUILD)/tests/faults
TEST_TOOLS := $(BUILD)/tests/list_cases $(BUILD)/tests/liar $(if $(NVCC),$(BUILD)/tests/hold_memory) $(BUILD)/draw
tests: $(TESTS) fuzzers $(TEST_TOOLS) $(if $(filter 0,$(STATIC)),$(FAULTS) $(BUILD)/shared/gpufilter) $(if $(MPICC),$(BUILD)/gpufilter-mpi)

faults fuzz: export LSAN_OPTIONS = suppressions=$(CURDIR)/tests/support/lsan.txt:print_suppressions=0
faults: ## Fail commands at every call that may fail (with sanitizers), and kill them there: about 25 minutes on 2 cores
	@$(MAKE) --no-print-directory CUDA=0 SAN=address,undefined faults-built
	@$(MAKE) --no-print-directory CUDA=0 faults-built
	build/tests/faults build/gpufilter-faults --faults 0
	build/san-address-undefined/tests/faults build/san-address-undefined/gpufilter-faults --kills 0

faults-cuda: faults-built ## Fail every call of the CUDA runtime; needs a GPU
	$(BUILD)/tests/faults $(BUILD)/gpufilter-faults --cuda --jobs 4

faults-built: $(FAULTS)
.PHONY: faults faults-cuda faults-built

check-cuda: ## Run the tests; without a GPU they fail
	@$(MAKE) --no-print-directory all tests
	@GF_REQUIRE_CUDA=1 tests/run $(BUILD)

# Without optimisation, branches of the binary correspond to branches of the source.
coverage: ## Measure branch coverage of the tests with gcovr
	@command -v gcovr >/dev/null || { echo "make coverage needs gcovr 6 or newer: pip install gcovr" >&2; exit 1; }
	@$(MAKE) --no-print-directory BUILD=build/coverage CUDA=0 OPT=-O0 SIMD_OPT=-O1 \
	  CFLAGS='--coverage -fprofile-update=atomic -DGF_COVERAGE' LDFLAGS=--coverage all tests
	@find build/coverage -name '*.gcda' -delete && mkdir -p build/coverage/report
	@GCOV_ERROR_FILE=/dev/null tests/run build/coverage || \
	  echo "Tests of messages may fail here: the compiler's library reports counters that it cannot write"
	@GCOV_ERROR_FILE=/dev/null build/coverage/tests/faults build/coverage/gpufilter-faults --kills 0 --faults 8000
	@gcovr --filter src/ --filter filters/ --merge-mode-functions=separate --gcov-ignore-parse-errors --print-summary \
	  --txt-metric branch --txt --html-details build/coverage/report/index.html --fail-under-branch 88 build/coverage/obj

valgrind: all tests ## Run a short form of the tests under valgrind's memcheck
	@tests/long/valgrind.sh $(BUILD)

mutants: ## Change one constant or comparison of the fast code at a time, and check that a test fails (MUTANTS="--every 10")
	@tests/long/mutate.py $(MUTANTS)

TIME ?= 60
fuzz: ## Fuzz every harness for TIME seconds with clang's libFuzzer and sanitizers (TIME=60)
	@command -v clang >/dev/null || { echo "make fuzz needs clang and its runtime (Debian: clang, libclang-rt-dev)" >&2; exit 1; }
	@$(MAKE) --no-print-directory CC=clang CUDA=0 MPI=0 SAN=fuzzer-no-link,address,undefined BUILD=build/fuzz/clang libfuzzers
	@tests/long/fuzz/run.sh build/fuzz/clang $(TIME) $(HARNESSES)

HOSTILE := png png_cost png_generated rows tiff program
hostile: all $(HOSTILE:%=$(BUILD)/tests/test_hostile_%) ## Read more than 600,000 generated hostile files
	@for test in $(HOSTILE); do GF_HOSTILE=1 $(BUILD)/tests/test_hostile_$$test || exit 1; done

hostile-batch: all ## Run a batch of 10000 files, 100 of them hostile (SAN=address,undefined, BATCH="10000 100")
	@tests/long/hostile_batch.sh $(BUILD) $(or $(BATCH),10000 100)

kill: all $(BUILD)/draw ## Kill three kinds of runs 150 times by each of four signals, and check their outputs (KILL=1000)
	@tests/long/kill.sh $(BUILD) $(or $(KILL),150)

golden: all tests ## Rewrite the golden digests and pictures with the golden backend
	@tests/system/golden.sh $(BUILD) write

abi: all ## Rewrite tests/system/abi.txt, the record of the ABI
	@tests/system/abi.sh $(BUILD) write

.PHONY: build-arch check-arch arch tests sweeps asan tsan fuzzers libfuzzers check-cuda coverage valgrind mutants fuzz hostile hostile-batch kill golden abi
