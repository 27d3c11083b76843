# gpufilter. `make help` lists the targets. Requires GNU make and gcc or clang; CUDA is optional.

## Variables
##   CUDA=auto|0|1        auto builds the CUDA backend if nvcc is found (PATH or CUDA_HOME)
##   CAIRO=auto|0|1       auto builds --plot if cairo's header is found; cairo is loaded at run time
##   MPI=0|1              1 builds the program with MPI, using mpicc (package libopenmpi-dev)
##   BUNDLE=0|1           1 builds the libraries from their sources, and links them statically
##   STATIC=0|1           1 builds a static program, and its libraries from their sources
##   ARCH=NAME            processor to build for, with a cross compiler: aarch64, s390x; implies STATIC=1, without CUDA
##   SAN=LIST             build with sanitizers in a directory of its own: address,undefined or thread
##   BUILD=DIR            build directory (build/)
##   V=1                  show the commands
##   PREFIX, DESTDIR      installation directories (/usr/local)
CUDA ?= auto
CAIRO ?= auto
MPI ?= 0
HOST := $(shell uname -m)
ARCH ?= $(HOST)
BUNDLE ?= $(STATIC)
STATIC ?= 0
SAN ?=
ifneq ($(ARCH),$(HOST))
  STATIC := 1
  ifeq ($(origin CC),default)
    CC := $(ARCH)-linux-gnu-gcc
  endif
  ifeq ($(origin AR),default)
    AR := $(ARCH)-linux-gnu-ar
  endif
  RANLIB ?= $(ARCH)-linux-gnu-ranlib
endif
ifeq ($(STATIC),1) # a static program loads no libraries
  CUDA := 0
  CAIRO := 0
endif
PREFIX ?= /usr/local
DESTDIR ?=
CUDA_HOME ?= /usr/local/cuda
comma := ,
BUILD ?= build$(if $(filter-out $(HOST),$(ARCH)),/$(ARCH))$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))

V ?= 0
Q := $(if $(filter 0,$(V)),@)
say = $(if $(filter 0,$(V)),@printf '  %-5s %s\n' $(1) $(2))
OPT ?= -O2
SIMD_OPT ?= -O3 -falign-functions=64
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Werror
SAN_FLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all)
# Sanitizers have checks of their own. Fortified functions need optimisation; a value of the caller takes precedence.
HARDEN := $(if $(SAN),,-fstack-protector-strong $(if $(filter -O0,$(OPT) $(CFLAGS))$(findstring _FORTIFY_SOURCE,$(CFLAGS) $(CPPFLAGS)),,\
  -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
HARDEN_LINK := $(if $(SAN),,-Wl,-z,relro -Wl,-z,now)
# -ffp-contract=off: no fused multiply-add may replace two roundings. -fno-math-errno compiles rintf to one instruction.
# C11 of gcc for s390x would compute float in double.
CFLAGS_ALL = -std=c11 $(OPT) -g $(WARN) -ffp-contract=off -fno-math-errno $(if $(filter s390x,$(ARCH)),-fexcess-precision=fast) -fPIC -fvisibility=hidden \
  -pthread -D_POSIX_C_SOURCE=200809L $(HARDEN) $(SAN_FLAGS) $(CFLAGS)
INCLUDES := -Isrc -Ifilters
ifeq ($(BUNDLE),1)
  LIBRARIES := $(BUILD)/libraries
  DEFINES += -DGF_LIBTIFF_LINKED -isystem $(LIBRARIES)/include
  LIBS := -L$(LIBRARIES)/lib -ltiff -lpng -ljpeg -lzstd -ldeflate -lz -lm -pthread
else
  LIBS := -lpng -ljpeg -lz -ldeflate -lm -ldl -pthread
  # libtiff is loaded at run time, under the name of the installed version.
  DEFINES += -DGF_LIBTIFF='"$(or $(shell readelf -d $$($(CC) -print-file-name=libtiff.so) 2>/dev/null \
    | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p'),libtiff.so.6)"'
endif
# Runs a program of another processor.
RUN := $(if $(filter-out $(HOST),$(ARCH)),qemu-$(ARCH))
PIE := $(if $(filter 0,$(STATIC)),-pie,$(if $(filter /%,$(shell $(CC) -print-file-name=rcrt1.o)),-static-pie,-static))

# ---- detection of tools and libraries -------------------------------------------------------------

ISAS := portable
ifeq ($(ARCH),x86_64)
  DEFINES += -DGF_X86_64
  ISAS += avx2 avx512
endif
ifeq ($(ARCH),aarch64)
  DEFINES += -DGF_AARCH64
  ISAS += neon
endif
ISA_portable :=
ISA_neon := -DGF_NEON
ISA_avx2 := -mavx2 -mfma -mbmi2
ISA_avx512 := -mbmi2 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mprefer-vector-width=512

NVCC := $(firstword $(wildcard $(CUDA_HOME)/bin/nvcc) $(shell command -v nvcc 2>/dev/null))
ifeq ($(CUDA),0)
  NVCC :=
endif
ifeq ($(CUDA)$(NVCC),1)
  $(error CUDA=1 but nvcc was not found: add it to PATH or set CUDA_HOME)
endif
WITHOUT := $(if $(filter 0,$(CUDA)),CUDA=0,nvcc not found)
ifeq ($(CUDA),auto)
  ifneq ($(NVCC),)
    ifneq ($(shell .ci/nvcc-works $(NVCC) $(BUILD)),yes)
      WITHOUT := $(NVCC) cannot compile, see $(BUILD)/nvcc-works.log
      NVCC :=
    endif
  endif
endif
ifneq ($(NVCC),)
  DEFINES += -DGF_WITH_CUDA
  CUDA_ROOT := $(patsubst %/bin/nvcc,%,$(realpath $(NVCC)))
  # Machine code for each generation that this nvcc supports (8.0 also runs on 8.6 and 8.9), and PTX of the
  # newest one for later GPUs.
  SMS_KNOWN := $(patsubst sm_%,%,$(shell $(NVCC) --list-gpu-code 2>/dev/null))
  SMS ?= $(filter $(SMS_KNOWN),75 80 90 100 120)
  GENCODE := $(foreach sm,$(SMS),-gencode=arch=compute_$(sm),code=sm_$(sm)) \
    -gencode=arch=compute_$(lastword $(SMS)),code=compute_$(lastword $(SMS))
  # Separated by slashes: nvcc splits macro definitions at commas.
  DEFINES += -DGF_CUDA_ARCHITECTURES=$(subst $() ,/,$(strip $(SMS)))
  NVCC_FLAGS := -O3 -std=c++17 -fmad=false -ftz=false -prec-div=true -prec-sqrt=true --threads 0 \
    -Werror all-warnings -Xcompiler -fPIC,-fvisibility=hidden,-ffp-contract=off,-Wall,-Wextra,-fno-exceptions \
    $(HARDEN:%=-Xcompiler %)
  NVCC_FLAGS += $(shell $(NVCC) --help | grep -q compress-mode && echo --compress-mode=size)
  CUDA_LIBS := $(firstword $(wildcard $(CUDA_ROOT)/lib64/libcudart_static.a \
    $(CUDA_ROOT)/targets/$(ARCH)-linux/lib/libcudart_static.a /usr/lib/$(ARCH)-linux-gnu/libcudart_static.a)) \
    $(shell $(CC) -print-file-name=libstdc++.a) -ldl -lrt
endif

ifneq ($(CAIRO),0)
  CAIRO_DIR := $(patsubst %/cairo.h,%,$(firstword $(wildcard $(addsuffix /cairo/cairo.h, \
    $(shell pkg-config --variable=includedir cairo 2>/dev/null) /usr/include))))
endif
ifeq ($(CAIRO)$(CAIRO_DIR),1)
  $(error CAIRO=1 but cairo.h was not found: install the package libcairo2-dev)
endif

# Only src/mpi uses MPI. `make test` links a program with it if mpicc is found.
MPICC := $(if $(filter 0,$(BUNDLE)),$(shell command -v mpicc 2>/dev/null))
ifeq ($(MPI)$(MPICC)$(filter demo test test-long,$(MAKECMDGOALS)),1)
  $(error MPI=1 but mpicc was not found: install the package libopenmpi-dev)
endif
ifneq ($(MPICC),)
  MPI_INCLUDES := $(patsubst -I%,-isystem %,$(filter -I%,$(shell $(MPICC) -show)))
  MPI_LIBS := $(filter -L% -l% -Wl%,$(shell $(MPICC) -show))
endif

# ---- files ----------------------------------------------------------------------------------------

SIMD_C := $(sort $(wildcard filters/*/*_simd.c src/core/*_simd.c src/io/*/*_simd.c))
LIB_C := $(sort $(filter-out $(SIMD_C),$(wildcard src/*.c src/core/*.c src/io/*.c src/io/*/*.c src/backend/*.c src/engine/*.c src/engine/*/*.c filters/*/*.c)))
MPI_C := $(sort $(wildcard src/mpi/*.c))
CLI_C := $(sort $(filter-out $(if $(CAIRO_DIR),,src/cli/plot.c),$(wildcard src/cli/*.c)))
HEADERS := $(BUILD)/include/gpufilter.h $(BUILD)/include/gpufilter_tools.h
# The program may include the public headers and its own directory only.
CLI_INCLUDES = -I$(BUILD)/include $(if $(CAIRO_DIR),-isystem $(CAIRO_DIR))
CLI_LIBS := $(if $(CAIRO_DIR),-lm -ldl)
CU := $(if $(NVCC),$(sort $(wildcard cuda/*/*.cu)))
OBJ := $(BUILD)/obj

LIB_O := $(LIB_C:%.c=$(OBJ)/%.o) $(foreach isa,$(ISAS),$(SIMD_C:%.c=$(OBJ)/%.$(isa).o)) $(CU:%.cu=$(OBJ)/%.cu.o)
CLI_O := $(CLI_C:%.c=$(OBJ)/%.o)
MPI_O := $(MPI_C:%.c=$(OBJ)/%.o)
VERSION := $(shell awk '/define GF_VERSION_(MAJOR|MINOR|PATCH)/ {v = v sep $$3; sep = "."} END {print v}' src/gpufilter.h)
SONAME := libgpufilter.so.$(firstword $(subst ., ,$(VERSION)))

## Targets
all: $(BUILD)/gpufilter $(BUILD)/libgpufilter.a $(if $(filter 0,$(STATIC)),$(BUILD)/libgpufilter.so) ## Build the program and the library
	@$(if $(filter build,$(BUILD)),ln -sf build/gpufilter gpufilter)
	@echo "built $(BUILD)/gpufilter, $(if $(NVCC),with CUDA for sm $(SMS),without CUDA: $(WITHOUT))$(if $(filter 1,$(MPI)),$(comma) with MPI)"

help: ## List the targets and variables
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2} /^##/ {sub(/^## ?/, ""); print}' Makefile $(RULES)

# ---- objects --------------------------------------------------------------------------------------

# Rewritten only when the flags change; every object depends on it.
CONFIG := $(CC) $(CFLAGS_ALL) $(SIMD_OPT) $(DEFINES) $(CPPFLAGS) $(NVCC) $(GENCODE) $(NVCC_FLAGS) $(LDFLAGS) $(CAIRO_DIR) $(MPI)
$(BUILD)/config: FORCE
	$(if $(LIBRARIES),,@[ -e $@ ] || CC='$(CC)' CPPFLAGS='$(CPPFLAGS) $(CFLAGS)' .ci/deps check)
	@mkdir -p $(@D)
	@printf '%s\n' '$(CONFIG)' | cmp -s - $@ || printf '%s\n' '$(CONFIG)' >$@
.PHONY: FORCE
ifdef LIBRARIES
$(BUILD)/config: $(LIBRARIES)/complete
$(LIBRARIES)/complete: packaging/libraries.sh packaging/libraries.txt
	@CC='$(CC)' AR='$(AR)' RANLIB='$(or $(RANLIB),ranlib)' packaging/libraries.sh $(@D) $(ARCH)
endif

$(OBJ)/%.o: %.c $(BUILD)/config
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS_ALL) $(DEFINES) $(CPPFLAGS) $(INCLUDES) -MMD -MP -c $< -o $@

define SIMD_RULE
$(OBJ)/%.$(1).o: %.c $(BUILD)/config
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)
	$$(Q)$$(CC) $$(CFLAGS_ALL) $$(SIMD_OPT) $$(ISA_$(1)) $$(DEFINES) $$(CPPFLAGS) $$(INCLUDES) -MMD -MP -c $$< -o $$@
endef
$(foreach isa,$(ISAS),$(eval $(call SIMD_RULE,$(isa))))

# stb relies on wrapping int arithmetic.
$(OBJ)/src/io/stb/impl.o: CFLAGS_ALL += -fwrapv
# Loops over samples: vectorized.
# Filters implement tables of functions, which rarely use every parameter.
$(OBJ)/filters/%.o: WARN += -Wno-unused-parameter
$(OBJ)/src/io/stream/convert.o: CFLAGS_ALL += $(SIMD_OPT)

$(CLI_O): INCLUDES = $(CLI_INCLUDES)
$(MPI_O): INCLUDES = $(CLI_INCLUDES) -Isrc/cli $(MPI_INCLUDES)
$(CLI_O) $(MPI_O): $(HEADERS)
$(BUILD)/include/gpufilter.h $(BUILD)/include/gpufilter_tools.h: $(BUILD)/include/%: src/%
	@mkdir -p $(@D)
	@cp $< $@

# Without --keep, nvcc names its intermediate files after its process ID, and builds are not reproducible.
$(OBJ)/%.cu.o: %.cu $(BUILD)/config
	@mkdir -p $@.tmp
	$(call say,NVCC,$@)
	$(Q)$(NVCC) $(NVCC_FLAGS) $(GENCODE) $(DEFINES) $(INCLUDES) -I. -MD -MP -MF $(@:.o=.d) -MT $@ --keep --keep-dir $@.tmp -c $< -o $@
	@rm -rf $@.tmp

$(BUILD)/libgpufilter.a: $(LIB_O) $(BUILD)/config
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $(LIB_O)

# The installed library exports the functions of gpufilter.h, that of the wheel also those of gpufilter_tools.h.
$(BUILD)/exports.map: src/gpufilter.h
	@mkdir -p $(@D)
	@{ echo '{ global:'; sed -nE '/^GF_API/,/;/s/.*\b(gf_[a-z0-9_]+)\(.*/\1;/p' $<; echo 'local: *; };'; } >$@
$(BUILD)/libgpufilter.so: EXPORTS = -Wl,--version-script=$(BUILD)/exports.map
$(BUILD)/libgpufilter.so: $(BUILD)/exports.map
$(BUILD)/libgpufilter.so $(BUILD)/shared/libgpufilter.so: $(LIB_O) $(BUILD)/config
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared -Wl,-soname,$(SONAME) -Wl,--exclude-libs,ALL -Wl,-z,defs $(EXPORTS) $(HARDEN_LINK) $(SAN_FLAGS) $(LDFLAGS) -o $@ $(LIB_O) $(LIBS) $(CUDA_LIBS)
	@ln -sf libgpufilter.so $(@D)/$(SONAME)

$(BUILD)/gpufilter: $(CLI_O) $(if $(filter 1,$(MPI)),$(MPI_O)) $(BUILD)/libgpufilter.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(PIE) $(HARDEN_LINK) $(SAN_FLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) $(CLI_LIBS) $(CUDA_LIBS) $(if $(filter 1,$(MPI)),$(MPI_LIBS))

$(BUILD)/draw: $(OBJ)/samples/draw.o
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# ---- rules of the subdirectories ----------------------------------------------------------------------

RULES := src/pages/rules.mk python/rules.mk packaging/rules.mk tests/rules.mk bench/rules.mk docs/rules.mk
include $(RULES)

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)
.SECONDARY:
.DELETE_ON_ERROR:

# ---- demo, test, checks ---------------------------------------------------------------------------

# Use all cores unless -j was given.
ALL_CORES = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell getconf _NPROCESSORS_ONLN))
demo: DEMO = $(BUILD)/gpufilter smooth --keep-brightness --axis xy --force --verbose samples/scene.png $(BUILD)/demo/scene.png
demo: ## Install missing packages, build, and smooth a sample picture
	@.ci/deps build $(BUILD)
	@$(MAKE) --no-print-directory $(ALL_CORES) all
	@mkdir -p $(BUILD)/demo
	$(DEMO)
	@echo "The smoothed picture is $(abspath $(BUILD)/demo/scene.png); the original is $(abspath samples/scene.png)."

# tests/run starts as many tests at once as make has jobs.
TEST_JOBS = $(addprefix -j ,$(patsubst -j%,%,$(filter-out -j,$(filter -j%,$(MAKEFLAGS)))))
check: ## Build, and run the quick tests: under a minute on 2 cores (T=png: names that contain png)
	@$(MAKE) --no-print-directory $(ALL_CORES) all tests
	@tests/run -t check $(TEST_JOBS) $(BUILD) $(T)

test: ## Install missing packages, build, and run all tests of a release: under 5 minutes on 2 cores (T=png)
	@.ci/deps test $(BUILD)
	@$(MAKE) --no-print-directory $(ALL_CORES) all tests
	@tests/run $(TEST_JOBS) $(BUILD) $(T)

# A failed step does not stop the later ones.
STEPS ?= sweeps arch asan tsan faults valgrind fuzz mutants
test-long: ## Run every test: full sweeps, sanitizers, faults, valgrind, fuzzing, mutants: about 2 hours on 2 cores (STEPS="valgrind mutants")
	@.ci/deps long $(BUILD)
	@failed=; for step in $(STEPS); do \
	  echo "== $$step"; start=$$(date +%s); \
	  $(MAKE) --no-print-directory $(ALL_CORES) MUTANTS="$(or $(MUTANTS),--every 50 --fail-under 60)" $$step || failed="$$failed $$step"; \
	  echo "== $$step: $$(($$(date +%s) - start)) s"; \
	done; [ -z "$$failed" ] || { echo "FAILED:$$failed"; exit 1; }

FORMATTED := $(shell find src filters cuda samples tests bench docs -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' 2>/dev/null)
format: ## Format all code with clang-format
	@clang-format -i $(FORMATTED)

lint: $(HEADERS) ## Check the format, and run clang-tidy and cppcheck
	@clang-format --dry-run -Werror $(FORMATTED)
	@clang-tidy --quiet $(filter-out src/io/stb/impl.c,$(LIB_C)) $(SIMD_C) samples/draw.c -- -std=c11 -D_POSIX_C_SOURCE=200809L $(DEFINES) $(INCLUDES)
	@clang-tidy --quiet $(CLI_C) $(wildcard docs/*.c) $(if $(MPICC),$(MPI_C)) -- -std=c11 -D_POSIX_C_SOURCE=200809L $(DEFINES) $(CLI_INCLUDES) -Isrc/cli $(MPI_INCLUDES)
	@clang-tidy --quiet $(PAGES_C) -- -std=c11 -D_POSIX_C_SOURCE=200809L $(CLI_INCLUDES) -Isrc/cli
	@cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
	  --suppress=missingIncludeSystem --suppress=varFuncNullUB $(INCLUDES) $(DEFINES) src filters samples

clean: ## Remove all build output
	rm -rf build gpufilter

.PHONY: all help demo check test test-long format lint clean
