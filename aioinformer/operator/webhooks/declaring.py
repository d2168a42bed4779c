"""The webhooks of an Operator as declarations."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, Unpack, overload

from ...client.lookup import resource_of_class
from ...objects.kube_object import KubeObject
from ...typed import CustomResource, crd
from ..context import Context
from ..declarations import require_declared
from ..kinds import ResourceReference
from .admission import Admission, AdmissionOptions
from .app import WebhookApp
from .configuration import Object, Reached, client_config, configurations
from .conversion import Conversion, Converter, KindClass
from .review import AdmissionReview

logger = logging.getLogger(__name__)

T = TypeVar("T")
A = TypeVar("A", bound=CustomResource)
B = TypeVar("B", bound=CustomResource)
R = TypeVar("R")
Nothing = TypeVar("Nothing", bound=Awaitable[None] | None)


class _Validates(Protocol[T]):
    """A decorator that registers a function that returns nothing, and returns it unchanged."""

    @overload
    def __call__(
        self, function: Callable[[AdmissionReview[T]], Nothing], /
    ) -> Callable[[AdmissionReview[T]], Nothing]: ...

    @overload
    def __call__(
        self, function: Callable[[AdmissionReview[T], Context], Nothing], /
    ) -> Callable[[AdmissionReview[T], Context], Nothing]: ...


class _Mutates(Protocol[T, R]):
    """A decorator that registers a function that returns an object or None, and returns it unchanged."""

    @overload
    def __call__(
        self, function: Callable[[AdmissionReview[T]], Awaitable[R | None]], /
    ) -> Callable[[AdmissionReview[T]], Awaitable[R | None]]: ...

    @overload
    def __call__(
        self, function: Callable[[AdmissionReview[T]], R | None], /
    ) -> Callable[[AdmissionReview[T]], R | None]: ...

    @overload
    def __call__(
        self, function: Callable[[AdmissionReview[T], Context], Awaitable[R | None]], /
    ) -> Callable[[AdmissionReview[T], Context], Awaitable[R | None]]: ...

    @overload
    def __call__(
        self, function: Callable[[AdmissionReview[T], Context], R | None], /
    ) -> Callable[[AdmissionReview[T], Context], R | None]: ...


class _Converts(Protocol[A, B]):
    """A decorator that registers a function from one version to another, and returns it unchanged."""

    @overload
    def __call__(self, function: Callable[[A], Awaitable[B]], /) -> Callable[[A], Awaitable[B]]: ...

    @overload
    def __call__(self, function: Callable[[A], B], /) -> Callable[[A], B]: ...


class DeclaresWebhooks:
    """The part of an Operator that declares webhooks."""

    name: str

    def __init__(self) -> None:
        self._admissions: list[Admission] = []
        self._conversions: list[Conversion] = []

    @property
    def has_webhooks(self) -> bool:
        """Whether it declares any webhook."""
        return bool(self._admissions or self._conversions)

    @overload
    def validate(self, resource: str, **options: Unpack[AdmissionOptions]) -> _Validates[KubeObject]: ...

    @overload
    def validate(self, resource: type[T], **options: Unpack[AdmissionOptions]) -> _Validates[T]: ...

    def validate(self, resource: ResourceReference, **options: Unpack[AdmissionOptions]) -> _Validates[Any]:
        """Register a validating webhook, as a decorator of ``check(review)`` or ``check(review, context)``.

        It refuses a request by ``raise Denied(...)`` or ``review.deny(...)``.

        Args:
            resource: The resource: a class or a name.
            **options: See AdmissionOptions.

        Raises:
            ConfigError: The declaration is invalid; the message has all mistakes. It is raised by the decorator.
        """
        return self._admission(resource, options, mutates=False)

    @overload
    def mutate(
        self, resource: str, **options: Unpack[AdmissionOptions]
    ) -> _Mutates[KubeObject, KubeObject | dict[str, Any]]: ...

    @overload
    def mutate(self, resource: type[T], **options: Unpack[AdmissionOptions]) -> _Mutates[T, T]: ...

    def mutate(self, resource: ResourceReference, **options: Unpack[AdmissionOptions]) -> _Mutates[Any, Any]:
        """Register a mutating webhook, as a decorator of ``fill(review)`` or ``fill(review, context)``.

        It returns the object as it should be; or it changes ``review.object`` and returns None. The server gets the
        difference as a patch. It may also refuse the request, as in ``validate``.

        Args:
            resource: The resource: a class or a name.
            **options: See AdmissionOptions.

        Raises:
            ConfigError: As for ``validate``.
        """
        return self._admission(resource, options, mutates=True)

    def _admission(
        self, resource: ResourceReference, options: AdmissionOptions, *, mutates: bool
    ) -> Callable[[Any], Any]:
        decorator = "mutate" if mutates else "validate"
        require_declared(self.name, decorator, resource, options, AdmissionOptions)

        def register(function: Any) -> Any:
            admission = Admission(
                operator=self.name, mutates=mutates, resource=resource, function=function, **options
            )
            admission.check(self._admissions)
            self._admissions.append(admission)
            return function

        return register

    def convert(self, old: type[A], new: type[B]) -> _Converts[A, B]:
        """Register a conversion between two versions of a kind, as a decorator of ``convert(old)``.

        It returns the object in the new version. The server keeps all metadata but labels and annotations. Between
        versions without a conversion of their own, several are called in turn.

        Args:
            old: The class of the version to convert from.
            new: The class of the version to convert to.

        Raises:
            ConfigError: As for ``validate``.
        """

        def register(function: Any) -> Any:
            conversion = Conversion(old, new, function)
            conversion.check(self.name, self._conversions)
            self._conversions.append(conversion)
            return function

        return register

    # -- serving -------------------------------------------------------------------------------------------

    def _webhook_app(self, context: Context | None) -> WebhookApp:
        self._log_missed_scale()
        return WebhookApp(
            [(admission, admission.bind(context)) for admission in self._admissions],
            self._converters().values(),
        )

    def _log_missed_scale(self) -> None:
        """Log which webhooks are not called when the scale of their objects changes."""
        asked = {
            (admission.of.group, admission.of.plural)
            for admission in self._admissions
            if admission.subresource == "scale"
        }
        for admission in self._admissions:
            if admission.misses_scale and (admission.of.group, admission.of.plural) not in asked:
                logger.info(
                    "%s is not called for %s/scale, by which kubectl scale and autoscalers change the replicas: that "
                    "needs %s(%r, subresource='scale')",
                    admission.title, admission.of.plural, admission.verb, str(admission.of),
                )  # fmt: skip

    def _converters(self) -> dict[str, Converter]:
        """Return the converter of each kind that has conversions, by the name of its definition.

        Raises:
            ConfigError: Conversions are missing.
        """
        kinds: dict[str, list[Conversion]] = {}
        for conversion in self._conversions:
            kinds.setdefault(str(resource_of_class(conversion.old)), []).append(conversion)
        return {name: Converter(its) for name, its in kinds.items()}

    @property
    def _webhook_classes(self) -> list[KindClass]:
        """The CustomResource classes that webhooks name."""
        named = [admission.resource for admission in self._admissions]
        named += [kind for conversion in self._conversions for kind in (conversion.old, conversion.new)]
        return [kind for kind in named if isinstance(kind, type) and issubclass(kind, CustomResource)]

    @property
    def converted_kinds(self) -> set[str]:
        """The kinds that have conversions, by the names of their definitions: ``websites.example.com``."""
        return set(self._converters())

    # -- objects for the server ----------------------------------------------------------------------------

    def custom_resources(self) -> list[tuple[type[CustomResource], ...]]:
        """Return the CustomResource classes that it names; classes that are versions of one kind together."""
        raise NotImplementedError

    def webhook_configurations(
        self,
        *,
        name: str | None = None,
        namespace: str | None = None,
        only: Sequence[str] = (),
        annotations: Mapping[str, str] | None = None,
        **reached: Unpack[Reached],
    ) -> list[Object]:
        """Return the MutatingWebhookConfiguration and ValidatingWebhookConfiguration, for the server.

        Args:
            name: Their name; the operator's if not given.
            namespace: The operator's own namespace, in which its webhooks are not called; the Service's if not given.
            only: The only namespaces for which the webhooks are called; ``()`` for all.
            annotations: Of both objects: ``{"cert-manager.io/inject-ca-from": "websites/websites"}``.
            **reached: See Reached.

        Raises:
            ConfigError: An argument is invalid, or a webhook selects the operator's own namespace.
        """
        return configurations(name or self.name, self._admissions, reached, namespace, annotations, only)

    @property
    def admission_kinds(self) -> list[str]:
        """The kinds of its webhook configurations: ``"MutatingWebhookConfiguration"``."""
        return [
            f"{kind}WebhookConfiguration"
            for kind in ("Mutating", "Validating")
            if any(admission.mutates == (kind == "Mutating") for admission in self._admissions)
        ]

    def definitions(
        self, *, annotations: Mapping[str, str] | None = None, **reached: Unpack[Reached]
    ) -> list[Object]:
        """Return the CustomResourceDefinitions of its classes, with conversion webhooks.

        Args:
            annotations: Of those with a conversion, as for ``webhook_configurations``.
            **reached: See Reached. Without it, the definitions have no conversion.

        Raises:
            ConfigError: A class cannot be a CustomResourceDefinition, conversions are missing, or an argument is
                invalid.
        """
        converters = self._converters()
        made = []
        for versions in self.custom_resources():
            converter = converters.get(str(resource_of_class(versions[0])))
            if converter is None or not reached:
                made.append(crd(*versions))
                continue
            config = client_config(reached, converter.path)
            webhook = {"clientConfig": config, "conversionReviewVersions": ["v1"]}
            definition = crd(*versions, conversion={"strategy": "Webhook", "webhook": webhook})
            if annotations:
                metadata = definition["metadata"]
                metadata["annotations"] = {**metadata.get("annotations", {}), **annotations}
            made.append(definition)
        return made
