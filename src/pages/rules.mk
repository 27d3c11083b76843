## Manual pages and completions

# They are made by a program of their own, from the same tables that the program reads.
PAGES := pages
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

# Each is called as its shell looks for it.
COMPLETIONS := $(BUILD)/completions/gpufilter.bash $(BUILD)/completions/_gpufilter $(BUILD)/completions/gpufilter.fish
$(BUILD)/completions/gpufilter.bash: SHELL_NAME = bash
$(BUILD)/completions/_gpufilter: SHELL_NAME = zsh
$(BUILD)/completions/gpufilter.fish: SHELL_NAME = fish
$(COMPLETIONS): $(PAGES_FROM)
	@mkdir -p $(@D)
	$(call say,SHELL,$@)
	$(Q)$< $(SHELL_NAME) >$@

all: $(BUILD)/man/made $(COMPLETIONS)
pages: $(BUILD)/man/made $(COMPLETIONS) ## Make the manual pages and the completions of bash, zsh and fish
.PHONY: pages
