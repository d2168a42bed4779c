"""``aioinformer top``: a live screen of a running operator, or of informers that it starts itself.

``sources`` reads snapshots, ``tables`` makes rows of them, ``screen`` shows these.
"""
