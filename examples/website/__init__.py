"""An operator with everything: owned objects, a finalizer, conditions, Events and a webhook. See docs/comparison.md."""
