## Benchmarks

$(BUILD)/codec: $(OBJ)/bench/codec.o
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/bench-decode: $(OBJ)/bench/decode.o $(BUILD)/libgpufilter.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) $(CUDA_LIBS)

$(BUILD)/timed: $(OBJ)/bench/timed.o
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) $(LDFLAGS) -o $@ $^

# The GPU benchmark uses internal headers, as the kernels do. The commit is in a separate file: a new commit
# recompiles only the file that prints it.
BENCH_CU := $(if $(NVCC),$(sort $(filter-out bench/chain.cu,$(wildcard bench/*.cu))))
$(BUILD)/commit: FORCE
	@mkdir -p $(@D)
	@commit=$$(git describe --always --dirty --exclude '*' 2>/dev/null || echo unknown); \
	  echo "$$commit" | cmp -s - $@ || echo "$$commit" >$@
$(OBJ)/bench/cuda_print.cu.o: $(BUILD)/commit
$(OBJ)/bench/cuda_print.cu.o: DEFINES += -DGF_BENCH_COMMIT=\"$$(cat $(BUILD)/commit)\"

$(BUILD)/bench-cuda: $(BENCH_CU:%.cu=$(OBJ)/%.cu.o) $(BUILD)/libgpufilter.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) $(CUDA_LIBS)

$(BUILD)/bench-chain: $(patsubst %,$(OBJ)/bench/%.cu.o,chain cuda_case cuda_content cuda_print cuda_timing read) $(BUILD)/libgpufilter.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) $(CUDA_LIBS)

$(BUILD)/bench-cpu: $(patsubst %.c,$(OBJ)/%.o,$(sort $(wildcard bench/cpu*.c))) $(BUILD)/libgpufilter.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) $(CUDA_LIBS)

$(OBJ)/bench/device.o $(OBJ)/bench/png_device.o: INCLUDES += $(addprefix -isystem ,$(filter-out /usr/include,$(CUDA_ROOT)/include))
$(BUILD)/bench-device: $(OBJ)/bench/device.o $(OBJ)/bench/read.cu.o $(BUILD)/libgpufilter.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) $(CUDA_LIBS)

$(BUILD)/bench-png-device: $(OBJ)/bench/png_device.o $(BUILD)/libgpufilter.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) $(CUDA_LIBS)

bench: all $(BUILD)/draw $(BUILD)/codec $(BUILD)/bench-cpu ## Time the program and the codec alone; compare the filters with memcpy and OpenCV
	@bench/start.sh $(BUILD)
	@bench/start.sh $(BUILD) 5 6000 4000
	@$(BUILD)/bench-cpu --peer bench/cpu_peer.py --json $(BUILD)/bench-cpu.json

bench-cuda: $(if $(NVCC),$(BUILD)/bench-cuda) ## Time every CUDA kernel; compare with a copy, CUB, NPP and cuBLAS (BENCH="--only smooth")
	@$(if $(NVCC),$(BUILD)/bench-cuda $(BENCH),echo "bench-cuda needs CUDA: $(WITHOUT)" >&2; exit 1)

$(BUILD)/instructions.so: bench/instructions.c
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS_ALL) -fvisibility=default -shared $< -o $@

bench-arch: $(BUILD)/instructions.so ## Count the instructions of an arm64 program per sample, under qemu (after make check-arch)
	@bench/instructions.sh $< samples/scene.png qemu-aarch64 $(BUILD)/aarch64/gpufilter portable neon

bench-chain: $(if $(NVCC),$(BUILD)/bench-chain) ## Time chains of CUDA kernels on whole images and on strips in the L2 cache, as CSV (BENCH="--chain windows")
	@$(if $(NVCC),$(BUILD)/bench-chain $(BENCH),echo "bench-chain needs CUDA: $(WITHOUT)" >&2; exit 1)

bench-device: $(if $(NVCC),$(BUILD)/bench-device) ## Time calls on images in device memory; compare with a copy
	@$(if $(NVCC),$(BUILD)/bench-device $(BENCH),echo "bench-device needs CUDA: $(WITHOUT)" >&2; exit 1)

bench-png-device: $(if $(NVCC),$(BUILD)/bench-png-device $(BUILD)/draw) ## Time the encoding of PNG in device memory; compare with a copy (BENCH="-n 64 FILE...")
	@$(if $(NVCC),,echo "bench-png-device needs CUDA: $(WITHOUT)" >&2; exit 1)
	@$(if $(BENCH),,$(BUILD)/draw --photo 6000 4000 1 $(BUILD)/photo24.ppm && $(BUILD)/draw --photo 1920 1080 2 $(BUILD)/photo2.ppm)
	@$(BUILD)/bench-png-device $(or $(BENCH),$(BUILD)/photo24.ppm $(BUILD)/photo2.ppm)

bench-e2e: all $(BUILD)/draw $(BUILD)/codec $(BUILD)/timed ## Time the program from PNG to PNG; compare with vips, ImageMagick and ffmpeg (BENCH="--quick")
	@python3 -B bench/e2e.py $(BUILD) $(BENCH)

bench-decode: $(BUILD)/bench-decode ## Time the decoding of PNGs with one and with several threads; compare with libpng (BENCH="FILE.png...")
	@$(BUILD)/bench-decode $(BENCH)

.PHONY: bench bench-arch bench-decode bench-cuda bench-chain bench-device bench-png-device bench-e2e bench-formats bench-resize bench-steps

bench-steps: all $(BUILD)/draw $(BUILD)/timed ## Time several filters in one run, PNG to PNG; compare with each alone, and with vips (BENCH="-j 2")
	@python3 -B bench/steps.py --build $(BUILD) $(BENCH)

bench-resize: all python ## Time resize of images in memory, one thread; compare with Pillow, libvips and OpenCV (BENCH=5 rounds)
	@PYTHONPATH=$(BUILD)/python GPUFILTER_LIBRARY=$(BUILD)/libgpufilter.so $(PYTHON) -B bench/resize.py $(BENCH)

bench-formats: all $(BUILD)/draw $(BUILD)/timed ## Time JPEG and TIFF, file to file; compare with vips (BENCH="--rounds 5 jpeg-png")
	@python3 -B bench/formats.py --build $(BUILD) $(BENCH)
