## Python
##   PYTHON=python3       interpreter that generates the package and its wheel
PYTHON ?= python3

# Build the package in $(BUILD)/python. Its functions are generated from the descriptors in the library. The other
# files make the directory a project that setuptools can build; a wheel also contains the library and the program.
PYTHON_FILES := $(wildcard python/gpufilter/*.py python/gpufilter/py.typed)
$(BUILD)/python/gpufilter/_functions.py: python/generate.py python/pyproject.toml docs/python.md LICENSE $(PYTHON_FILES) $(BUILD)/libgpufilter.so
	$(call say,PY,$(@D))
	$(Q)rm -rf $(@D) && mkdir -p $(@D) && cp $(PYTHON_FILES) $(@D)
	$(Q)cp python/pyproject.toml LICENSE $(BUILD)/python && cp docs/python.md $(BUILD)/python/README.md
	$(Q)echo '$(VERSION)' >$(BUILD)/python/VERSION
	$(Q)$(PYTHON) -B python/generate.py $(BUILD)/libgpufilter.so $@.tmp && mv $@.tmp $@

python: $(BUILD)/python/gpufilter/_functions.py ## Generate the Python package in build/python (needs python3)

.PHONY: python
