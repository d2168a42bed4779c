"""Random edits of random typed parts of random objects, and what each of them means.

The meaning is found without the library: every step of an edit is made to the typed object, and to the item of the
whole object that is known to be the same.
"""
