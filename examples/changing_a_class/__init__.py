"""An operator whose class changes from release to release: docs/changing-a-class.md."""
