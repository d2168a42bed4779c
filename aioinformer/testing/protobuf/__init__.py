"""Kubernetes' protobuf as a server has it: objects are written as Go's marshallers write them, and bodies are read."""

from aioinformer.testing.protobuf.bodies import read_object
from aioinformer.testing.protobuf.envelope import envelope, envelope_of_list, frame
from aioinformer.testing.protobuf.marshal import marshaller

__all__ = ["envelope", "envelope_of_list", "frame", "marshaller", "read_object"]
