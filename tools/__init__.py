"""Programs that prove the product or show it: no part of the wheel, run through the Makefile."""
