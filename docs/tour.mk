## The tour

tour: all $(BUILD)/draw ## Write docs/tour.md anew: a session at a terminal, had for it
	@python3 -B docs/make-tour.py $(BUILD)

.PHONY: tour
