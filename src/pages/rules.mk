## Manual pages and completions

# They are made by a program of their own, from the same tables that the program reads.
PAGES_C := $(sort $(wildcard src/pages/*.c))
PAGES_O := $(PAGES_C:%.c=$(OBJ)/%.o)
$(PAGES_O): INCLUDES = $(CLI_INCLUDES) -Isrc/cli
$(PAGES_O): $(BUILD)/include/gpufilter.h

$(BUILD)/pages: $(PAGES_O) $(filter-out %/main.o,$(CLI_O)) $(ALONE_O) $(BUILD)/libgpufilter.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) $(CLI_LIBS) $(CUDA_LIBS)

PAGES_FROM := $(BUILD)/pages $(wildcard src/pages/*.in) src/gpufilter.h CHANGELOG.md
$(BUILD)/man/made: $(PAGES_FROM)
	$(call say,MAN,$(@D))
	$(Q)rm -rf $(@D) && mkdir -p $(@D)
	$(Q)for page in $$($< list); do $< man "$$page" >"$(@D)/$$page" || exit 1; done
	@touch $@
