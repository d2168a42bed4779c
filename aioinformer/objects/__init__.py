"""Kubernetes objects: ``KubeObject``, metadata, keys, labels, fields, codecs, packing, protobuf, finalizers and
status conditions.
"""
