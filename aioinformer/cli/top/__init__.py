"""``aioinformer top``: a live screen of a running operator, or of informers that it starts itself.

``tables`` makes rows of snapshots, ``screen`` shows these. An operator's snapshots are its debug page;
``informer_source`` takes those of informers.
"""
