## Documentation

docs: $(BUILD)/gpufilter ## Generate docs/gallery.md and its pictures (needs python3, and cairo for the plots)
	$(call say,DOCS,docs/gallery.md)
	$(Q)python3 docs/make_gallery.py $< docs README.md

.PHONY: docs
