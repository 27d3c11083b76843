## Packaging
##   BINDIR, LIBDIR, INCLUDEDIR, DATADIR, MANDIR, BASHDIR, ZSHDIR, FISHDIR   directory of each kind of file, under DESTDIR
##   MAINTAINER, DEB_REVISION    maintainer and revision of the Debian packages (1, or 1+cuda)
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR ?= $(PREFIX)/share
MANDIR ?= $(DATADIR)/man
BASHDIR ?= $(DATADIR)/bash-completion/completions
ZSHDIR ?= $(DATADIR)/zsh/site-functions
FISHDIR ?= $(DATADIR)/fish/vendor_completions.d
MAINTAINER ?= gpufilter developers <gpufilter@localhost>
DEB_REVISION ?= 1$(if $(NVCC),+cuda)

# ---- install --------------------------------------------------------------------------------------

at = '$(DESTDIR)$(1)'
# Install a page (FILE,DIRECTORY[,NAME]) if it exists.
page = { [ ! -f $(1) ] || { mkdir -p $(2) && install -m 644 $(1) $(2)/$(3); }; }
# Read how the library was built: root's PATH may lack nvcc.
CUDA_PRIVATE = $$(sed -n 's/.* -DGF_WITH_CUDA.*/ -lcudart_static -lstdc++ -ldl -lrt/p' $(BUILD)/config)
# Update the linker cache if installing as root without DESTDIR.
LDCONFIG = [ -n '$(DESTDIR)' ] || [ "$$(id -u)" -ne 0 ] || PATH="$$PATH:/usr/sbin:/sbin" ldconfig || :

# Install the existing build for the same reason. Create missing directories readable for all, whatever the umask; leave existing
# ones unchanged (install -d would change their mode).
install: $(if $(wildcard $(BUILD)/gpufilter),,all) $(if $(wildcard $(BUILD)/man/gpufilter.1),,$(PAGES)) ## Install program, library, header, manual pages and completions under DESTDIR/PREFIX
	$(Q)umask 022 && mkdir -p $(call at,$(BINDIR)) $(call at,$(LIBDIR)/pkgconfig) $(call at,$(INCLUDEDIR))
	$(Q)install -m 755 $(BUILD)/gpufilter $(call at,$(BINDIR)/gpufilter)
	$(Q)install -m 644 src/gpufilter.h $(call at,$(INCLUDEDIR)/gpufilter.h)
	$(Q)install -m 644 $(BUILD)/libgpufilter.a $(call at,$(LIBDIR)/libgpufilter.a)
	$(Q)install -m 755 $(BUILD)/libgpufilter.so $(call at,$(LIBDIR)/libgpufilter.so.$(VERSION))
	$(Q)ln -sf libgpufilter.so.$(VERSION) $(call at,$(LIBDIR)/$(SONAME))
	$(Q)ln -sf $(SONAME) $(call at,$(LIBDIR)/libgpufilter.so)
	$(Q)umask 022 && rm -f $(call at,$(LIBDIR)/pkgconfig/gpufilter.pc) && printf '%s\n' 'prefix=$(PREFIX)' \
	  'libdir=$(subst $(PREFIX)/,$${prefix}/,$(LIBDIR))' 'includedir=$(subst $(PREFIX)/,$${prefix}/,$(INCLUDEDIR))' '' \
	  'Name: gpufilter' 'Description: Image filters with the same bits on CPU and GPU' 'Version: $(VERSION)' \
	  'Requires.private: libpng libjpeg zlib libdeflate' 'Libs: -L$${libdir} -lgpufilter' \
	  "Libs.private: -lm -ldl -pthread$(CUDA_PRIVATE)" 'Cflags: -I$${includedir}' >$(call at,$(LIBDIR)/pkgconfig/gpufilter.pc)
	$(Q)umask 022 && for page in $(BUILD)/man/*.1; do $(call page,"$$page",$(call at,$(MANDIR)/man1)) || exit; done
	$(Q)umask 022 && $(call page,$(BUILD)/completions/gpufilter.bash,$(call at,$(BASHDIR)),gpufilter)
	$(Q)umask 022 && $(call page,$(BUILD)/completions/_gpufilter,$(call at,$(ZSHDIR)),_gpufilter)
	$(Q)umask 022 && $(call page,$(BUILD)/completions/gpufilter.fish,$(call at,$(FISHDIR)),gpufilter.fish)
	@$(LDCONFIG)
	@$(if $(findstring s,$(firstword -$(MAKEFLAGS))),:,printf) 'installed %s, library, header, manual pages and completions\n' $(call at,$(BINDIR)/gpufilter)

# The build directory may be missing: remove pages by name.
uninstall: ## Remove the installed files
	$(Q)rm -f $(call at,$(BINDIR)/gpufilter) $(call at,$(INCLUDEDIR)/gpufilter.h) $(call at,$(LIBDIR)/libgpufilter.a) \
	  $(call at,$(LIBDIR)/libgpufilter.so) $(call at,$(LIBDIR)/$(SONAME)) $(call at,$(LIBDIR)/libgpufilter.so.$(VERSION)) \
	  $(call at,$(LIBDIR)/pkgconfig/gpufilter.pc) $(call at,$(BASHDIR)/gpufilter) $(call at,$(ZSHDIR)/_gpufilter) \
	  $(call at,$(FISHDIR)/gpufilter.fish) $(call at,$(MANDIR)/man1)/gpufilter*.1
	@$(LDCONFIG)

# ---- releases -------------------------------------------------------------------------------------

DIST := $(BUILD)/gpufilter-$(VERSION).tar.gz
dist: ## Write the release tarball
	@packaging/dist.sh $(VERSION) $(DIST)
	@echo "wrote $(DIST)"

distcheck: dist ## Build, test, install and uninstall the tarball without git: 4 minutes on 2 cores
	@packaging/distcheck.sh $(VERSION) $(DIST)

# Settings for deb.sh; packages are built without MPI, sanitizers and local flags.
DEB_SETTINGS = CUDA=$(if $(NVCC),1,0) CUDA_HOME='$(CUDA_HOME)' SMS='$(SMS)' DEB_REVISION='$(DEB_REVISION)' \
  MAINTAINER='$(subst ','\'',$(MAINTAINER))'
deb: dist ## Build Debian packages, with CUDA if nvcc is found: gpufilter, libgpufilter0, libgpufilter-dev
	@.ci/deps deb $(BUILD)
	@$(DEB_SETTINGS) packaging/deb.sh $(VERSION) $(DIST) $(BUILD)/deb

debcheck: deb ## Rebuild the packages elsewhere, compare the bytes, and run lintian
	@$(DEB_SETTINGS) packaging/debcheck.sh $(VERSION) $(DIST) $(BUILD)/deb

# The wheel contains the program on the shared library; wheelcheck compares it with the other one.
wheel: ## Build a Python wheel of the package, the library and the program: build/wheel/*.whl
	@PYTHON='$(PYTHON)' .ci/deps wheel $(BUILD)
	@$(MAKE) --no-print-directory $(ALL_CORES) wheel-built

wheel-built: $(BUILD)/shared/gpufilter $(BUILD)/gpufilter python
	@PYTHON='$(PYTHON)' packaging/wheel.sh $(VERSION) $(BUILD)

wheelcheck: wheel ## Install the wheel in a new environment, compare it with the program, and run the tests of the package
	@PYTHON='$(PYTHON)' packaging/try-wheel.sh $(BUILD)/wheel/*.whl $(BUILD)/gpufilter

.PHONY: install uninstall dist distcheck deb debcheck wheel wheel-built wheelcheck
