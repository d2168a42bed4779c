"""Kubernetes' protobuf on the server's side: write objects as Go's marshallers do, and read bodies."""

from aioinformer.testing.protobuf.bodies import read_object
from aioinformer.testing.protobuf.envelope import envelope, envelope_of_list, frame
from aioinformer.testing.protobuf.marshal import marshaller

__all__ = ["envelope", "envelope_of_list", "frame", "marshaller", "read_object"]
