## Documentation

docs: gallery ## Write the generated pages and draw their pictures (needs python3, and cairo for the plots)

gallery: $(BUILD)/gpufilter
	$(call say,DOCS,docs/gallery.md)
	$(Q)python3 docs/make_gallery.py $< docs README.md

.PHONY: docs gallery
