## Manual pages and completions

# build/pages generates them from the tables that parser and help read.
PAGES := pages
PAGES_C := $(sort $(wildcard src/pages/*.c))
PAGES_O := $(PAGES_C:%.c=$(OBJ)/%.o)
$(PAGES_O): INCLUDES = $(CLI_INCLUDES) -Isrc/cli
$(PAGES_O): $(HEADERS)

$(BUILD)/pages: $(PAGES_O) $(filter-out %/main.o,$(CLI_O)) $(BUILD)/libgpufilter.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(SAN_FLAGS) $(PIE) $(LDFLAGS) -o $@ $^ $(LIBS) $(CLI_LIBS) $(CUDA_LIBS)

# The date of the pages is that of the newest version in the change log, so that builds are reproducible.
$(BUILD)/man/made: $(BUILD)/pages $(wildcard src/pages/*.in) CHANGELOG.md
	$(call say,MAN,$(@D))
	$(Q)rm -rf $(@D) $(BUILD)/completions && mkdir -p $(@D) $(BUILD)/completions
	$(Q)day=$$(sed -n 's/^## .*\([0-9]\{4\}-[0-9][0-9]-[0-9][0-9]\)).*/\1/p' CHANGELOG.md | head -n 1) && \
	  day=$$(LC_ALL=C date -d "$${day:?no date in CHANGELOG.md}" '+%B %-d, %Y') && \
	  for page in $$($(RUN) $<); do $(RUN) $< "$$page" "$$day" >$(BUILD)/$$page || exit; done
	@touch $@

all: $(BUILD)/man/made
pages: $(BUILD)/man/made ## Generate manual pages and completions of bash, zsh and fish
.PHONY: pages
