"""The pytest plugin, as the tests of another project use it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import trustme  # noqa: F401 - pytester forgets modules that a project imports first, and cryptography loads only once

from aioinformer.testing.rbac import Usage

pytest_plugins = ["pytester"]

OPERATOR = """
from aioinformer.operator import Context, CustomResource, Operator, Request
from aioinformer.testing import eventually

class Website(CustomResource, group="example.com", version="v1"):
    spec: dict[str, str] = {}

operator = Operator("websites", events=False)

@operator.controller(Website, owns=["configmaps"])
async def reconcile(request: Request[Website], context: Context) -> None:
    website = request.object
    await context.resource("configmaps").apply({
        "metadata": {"name": website.metadata.name, "namespace": website.metadata.namespace},
        "data": website.spec,
    })
"""

TESTS = """
import pytest
from aioinformer import KubeObject, Resource
from aioinformer.testing import eventually
from websites import Website, operator

{mark}
async def test_website_gets_a_config_map(run_operator, client, namespace):
    async with run_operator(operator):
        await Resource(client, Website).create(
            {{"metadata": {{"name": "home", "namespace": namespace}}, "spec": {{"title": "Home"}}}}
        )
        maps = Resource(client, "configmaps", KubeObject)
        made = await eventually(lambda: maps.get(f"{{namespace}}/home"))
        assert made["data"] == {{"title": "Home"}}
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with an operator."""
    pytester.makepyfile(websites=OPERATOR)
    pytester.syspathinsert()
    return pytester


def run(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    common = ["-p", "no:cacheprovider", "-W", "error", "-q", "-rs"]
    if "no:asyncio" not in options:
        common += ["-o", "asyncio_default_fixture_loop_scope=function"]  # pytest-asyncio warns without
    return project.runpytest_inprocess(*common, *options)


@pytest.mark.parametrize(
    ("mark", "options"),
    [
        ("", ["-o", "asyncio_mode=auto", "-p", "no:anyio"]),
        ("@pytest.mark.asyncio", []),
        ("@pytest.mark.anyio", ["-p", "no:asyncio"]),
        ("@pytest.mark.anyio", []),
    ],
    ids=["asyncio auto", "asyncio strict", "anyio", "anyio beside asyncio"],
)
def test_operator_runs_with_each_async_plugin(
    project: pytest.Pytester, mark: str, options: list[str]
) -> None:
    project.makeconftest('import pytest\n@pytest.fixture\ndef anyio_backend():\n    return "asyncio"\n')
    project.makepyfile(TESTS.format(mark=mark))
    run(project, "--api-server", "embedded", *options).assert_outcomes(passed=1)


def test_ini_chooses_the_server(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\napi_server = embedded\nasyncio_mode = auto\n")
    project.makepyfile(
        """
        async def test_embedded(api_server):
            assert api_server.kind == "embedded"
            assert api_server.embedded.url.startswith("http://127.0.0.1:")
            assert api_server.kubeconfig.exists()
        """
    )
    run(project).assert_outcomes(passed=1)


def test_project_sets_options_of_the_embedded_server(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pytest

        @pytest.fixture
        def api_server_options():
            return {"workloads": True, "tls": True, "token": "secret"}

        async def test_workloads(api_server, namespace):
            server = api_server.embedded
            server.create("v1", "pods", {"metadata": {"name": "a"}, "spec": {"containers": []}}, namespace)
            assert server.get("v1", "pods", "a", namespace)["status"]["phase"] == "Running"
        """
    )
    run(project, "--api-server", "embedded", "-o", "asyncio_mode=auto").assert_outcomes(passed=1)


def test_embedded_server_calls_the_operators_webhooks(project: pytest.Pytester) -> None:
    project.makepyfile("""
        import pytest
        from aioinformer import InvalidError, Resource
        from aioinformer.operator import AdmissionReview, Context, CustomResource, Denied, Operator, Request

        class GreetingV1(CustomResource, group="example.com", version="v1", kind="Greeting"):
            spec: dict[str, str] = {}

        class Greeting(CustomResource, group="example.com", version="v2", kind="Greeting", storage=True):
            spec: dict[str, str] = {}

        operator = Operator("greetings", events=False)

        @operator.controller(Greeting)
        async def reconcile(request: Request[Greeting], context: Context) -> None: ...

        @operator.mutate(Greeting)
        def default(review: AdmissionReview[Greeting]) -> Greeting:
            review.object.spec.setdefault("text", "hello")
            return review.object

        @operator.validate(Greeting)
        async def check(review: AdmissionReview[Greeting], context: Context) -> None:
            if review.object.spec["text"] in [each.spec["text"] for each in await context.resource(Greeting).list()]:
                raise Denied("is said already", field="spec.text")

        @operator.convert(GreetingV1, Greeting)
        def newer(old: GreetingV1) -> Greeting:
            return Greeting(metadata=old.metadata, spec={"text": old.spec["say"]})

        @operator.convert(Greeting, GreetingV1)
        def older(new: Greeting) -> GreetingV1:
            return GreetingV1(metadata=new.metadata, spec={"say": new.spec["text"]})

        async def test_it(run_operator, client, namespace):
            async with run_operator(operator):
                metadata = {"name": "a", "namespace": namespace}
                made = await Resource(client, Greeting).create({"metadata": metadata, "spec": {}})
                assert made.spec == {"text": "hello"}
                assert (await Resource(client, GreetingV1).get(f"{namespace}/a")).spec == {"say": "hello"}
                with pytest.raises(InvalidError, match="is said already"):
                    await Resource(client, Greeting).create({"metadata": {**metadata, "name": "b"}, "spec": {}})
    """)
    run(project, "--api-server", "embedded", "-o", "asyncio_mode=auto").assert_outcomes(passed=1)


def test_operator_gets_its_settings(project: pytest.Pytester) -> None:
    project.makepyfile(
        greetings="""
        import msgspec
        from aioinformer.operator import Operator

        class Settings(msgspec.Struct):
            greeting: str

        operator = Operator("greetings", settings=Settings, events=False)
        heard = []

        @operator.controller("namespaces")
        async def reconcile(request, context):
            heard.append(context.get(Settings).greeting)
        """,
        test_it="""
        from aioinformer.testing import eventually
        from greetings import Settings, heard, operator

        async def test_greeting(run_operator):
            async with run_operator(operator, settings=Settings("hello")):
                await eventually(lambda: "hello" in heard)
        """,
    )
    run(project, "--api-server", "embedded", "-o", "asyncio_mode=auto").assert_outcomes(passed=1)


def test_a_reconciler_that_changes_a_cached_object_fails_the_test(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_it="""
        from aioinformer import Resource
        from aioinformer.operator import Operator
        from aioinformer.testing import eventually
        from websites import Website

        operator = Operator("websites", events=False)

        @operator.controller(Website)
        async def reconcile(request, context):
            for each in await context.resource(Website).list():
                each.spec["title"] = "changed"

        async def test_it(run_operator, client, namespace):
            async with run_operator(operator) as manager:
                await Resource(client, Website).create({"metadata": {"name": "home", "namespace": namespace}})
                await eventually(lambda: manager.controllers[0].state.reconciles)
        """
    )
    result = run(project, "-o", "api_server=embedded", "-o", "asyncio_mode=auto")
    result.stdout.fnmatch_lines(
        ["*CacheMutatedError: websites.example.com*/home was modified at spec.title: *"]
    )
    result.assert_outcomes(failed=1)


def test_unknown_server_in_the_ini_is_an_error(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\napi_server = kind\n")
    run(project).stderr.fnmatch_lines(["*api_server = 'kind': use one of embedded, kubernetes, kubeconfig*"])


def test_without_a_choice_fixtures_of_other_plugins_stay(project: pytest.Pytester) -> None:
    project.makepyfile(
        other='import pytest\n@pytest.fixture\ndef client():\n    return "theirs"\n',
        test_it="def test_client(client):\n    assert client == 'theirs'\n",
    )
    run(project, "-p", "other").assert_outcomes(passed=1)


def test_plugin_imports_nothing_until_it_is_used() -> None:
    code = """
import sys, pytest
before = set(sys.modules)
import pytest_aioinformer
assert set(sys.modules) - before == {"pytest_aioinformer"}, set(sys.modules) - before
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_sync_test_without_async_plugin_says_what_to_install(project: pytest.Pytester) -> None:
    project.makepyfile("def test_it(client): pass")
    result = run(project, "--api-server", "embedded", "-p", "no:asyncio", "-p", "no:anyio")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*install pytest-asyncio, or mark the test anyio*"])


def test_tests_run_in_parallel(project: pytest.Pytester) -> None:
    project.makepyfile(TESTS.format(mark=""), test_other=TESTS.format(mark=""))
    run(project, "--api-server", "embedded", "-o", "asyncio_mode=auto", "-n", "2").assert_outcomes(passed=2)


# -- on a server that tests share --------------------------------------------------------------------------

NAMESPACES = """
import asyncio
import pytest
from pathlib import Path

async def test_passes(namespace):
    Path("passed").write_text(namespace)

async def test_fails(namespace):
    Path("failed").write_text(namespace)
    assert False
"""

SERVER = """
import asyncio, sys
from pathlib import Path
from aioinformer.testing import APIServer

async def main():
    async with APIServer() as server:
        server.kubeconfig("kubeconfig")
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        print(*(each["metadata"]["name"] for each in server.list("v1", "namespaces")))

asyncio.run(main())
"""


@pytest.mark.parametrize("option", ["", "--keep-namespace"])
def test_namespace_is_deleted_unless_kept(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    project.makepyfile(NAMESPACES)
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    monkeypatch.setenv("KUBECONFIG", str(project.path / "kubeconfig"))
    result = run(
        project, "--api-server", "kubeconfig", "-o", "asyncio_mode=auto", *([option] if option else [])
    )
    result.assert_outcomes(passed=1, failed=1)
    remaining, _ = server.communicate()
    passed, failed = Path("passed").read_text(), Path("failed").read_text()
    assert passed != failed
    assert passed not in remaining.split()
    assert (failed in remaining.split()) == bool(option)
    if option:
        result.stdout.fnmatch_lines([f"*kept the namespace {failed}*"])


def test_faults_skip_on_other_servers(project: pytest.Pytester) -> None:
    project.makepyfile("def test_it(api_server):\n    api_server.embedded.faults.drop_watches()")
    result = run(project, "--api-server", "kubeconfig")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*needs the embedded API server, not --api-server kubeconfig*"])


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (
            "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:9'}}]",
            "http://127.0.0.1:9: cannot connect",
        ),
        ("clusters: []", "kubeconfig"),
    ],
    ids=["away", "no such cluster"],
)
def test_unusable_cluster_is_one_line_for_each_test(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, config: str, why: str
) -> None:
    kubeconfig = project.path / "kubeconfig"
    context = "contexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n"
    kubeconfig.write_text(f"apiVersion: v1\nkind: Config\n{config}\n{context}")
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    project.makepyfile("async def test_a(namespace): pass\nasync def test_b(run_operator, client): pass")
    result = run(project, "--api-server", "kubeconfig", "-o", "asyncio_mode=auto")
    result.assert_outcomes(errors=2)
    lines = [outline for outline in result.outlines if outline.startswith("--api-server kubeconfig: ")]
    assert len(lines) == 2
    assert why in lines[0]
    assert "choose another context or --api-server embedded" in lines[0]
    assert "Traceback" not in result.stdout.str()
    assert "library_transport" not in result.stdout.str()


# -- on a real kube-apiserver ------------------------------------------------------------------------------


def test_missing_binaries_are_one_error_with_advice(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(project.path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    project.makepyfile("def test_it(api_server): pass")
    result = run(project, "--api-server", "kubernetes")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*etcd is neither in $KUBEBUILDER_ASSETS nor on $PATH*setup-envtest*"])


@pytest.mark.kubernetes
@pytest.mark.xdist_group("kubernetes")
def test_operator_runs_on_kubernetes(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, kubernetes_binaries: Path
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(kubernetes_binaries))
    project.makepyfile(TESTS.format(mark=""))
    run(project, "--api-server", "kubernetes", "-o", "asyncio_mode=auto").assert_outcomes(passed=1)


@pytest.mark.kubernetes
@pytest.mark.xdist_group("kubernetes")
def test_a_certificate_that_is_being_written_is_waited_for(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, kubernetes_binaries: Path
) -> None:
    programs = project.mkdir("programs")
    (programs / "etcd").symlink_to(kubernetes_binaries / "etcd")
    server = programs / "kube-apiserver"
    server.write_text(
        "#!/bin/sh\n"
        'for each in "$@"; do case $each in --cert-dir=*) folder=${each#*=};; esac; done\n'
        "mkdir $folder && : > $folder/apiserver.crt && sleep 1 && rm $folder/apiserver.crt\n"
        f'exec {kubernetes_binaries / "kube-apiserver"} "$@"\n'
    )
    server.chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(programs))
    project.makepyfile("async def test_it(namespace): pass")
    run(project, "--api-server", "kubernetes", "-o", "asyncio_mode=auto").assert_outcomes(passed=1)


RUNS = """
from aioinformer import Resource
from aioinformer.testing import eventually
from websites import Website, operator

async def test_the_operator_runs(run_operator, aioinformer_client, aioinformer_namespace):
    async with run_operator(operator) as manager:
        home = {"metadata": {"name": "home", "namespace": aioinformer_namespace}, "spec": {"title": "Home"}}
        await Resource(aioinformer_client, Website).create(home)
        maps = Resource(aioinformer_client, "configmaps")
        await eventually(lambda: maps.get(f"{aioinformer_namespace}/home"))
"""

OTHERS = """
import pytest

class WebClient:
    def get(self, path): return 200

@pytest.fixture
def client(): return WebClient()

@pytest.fixture
def namespace(): return {"a": 1}

@pytest.fixture
def api_server(): return "http://localhost:8000"
"""


@pytest.mark.parametrize("owner", ["the project", "another plugin"])
def test_other_fixtures_of_the_same_names_stay_what_they_are(project: pytest.Pytester, owner: str) -> None:
    if owner == "the project":
        project.makeconftest(OTHERS)
    else:
        project.makepyfile(websites_web=OTHERS)
        project.makeconftest('pytest_plugins = ["websites_web"]')
    project.makepyfile(
        RUNS
        + """
def test_others(client, namespace, api_server):
    assert client.get("/") == 200
    assert namespace == {"a": 1}
    assert api_server == "http://localhost:8000"
"""
    )
    run(project, "--api-server", "embedded", "-o", "asyncio_mode=auto").assert_outcomes(passed=2)


def test_an_error_in_another_plugins_fixture_is_shown(project: pytest.Pytester) -> None:
    project.makepyfile(
        websites_web="import pytest\n@pytest.fixture\ndef client(no_such_fixture): return 1\n",
        test_it="def test_it(client): ...",
    )
    project.makeconftest('pytest_plugins = ["websites_web"]')
    result = run(project, "--api-server", "embedded", "-o", "asyncio_mode=auto")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*fixture 'no_such_fixture' not found"])


def test_a_project_can_choose_client_and_namespace_of_the_operator(project: pytest.Pytester) -> None:
    project.makeconftest(
        """
        import pytest

        @pytest.fixture
        def aioinformer_namespace(aioinformer_server):
            aioinformer_server.embedded.create("v1", "namespaces", {"metadata": {"name": "mine"}})
            return "mine"
        """
    )
    project.makepyfile(
        RUNS
        + """
        assert aioinformer_namespace == "mine"

def test_short_name(namespace):
    assert namespace == "mine"
"""
    )
    run(project, "--api-server", "embedded", "-o", "asyncio_mode=auto").assert_outcomes(passed=2)


@pytest.mark.parametrize("fixture", ["api_server", "run_operator"])
@pytest.mark.parametrize(
    ("mark", "options", "why"),
    [
        (
            "@pytest.mark.anyio",
            ["-p", "no:asyncio"],
            "*the fixture '*' needs asyncio, and this test runs on trio: let the fixture anyio_backend *",
        ),
        ("@pytest.mark.trio", [], "*the fixture '*' needs asyncio, and this test runs on trio"),
        (
            "@pytest.mark.asyncio(loop_scope='module')",
            [],
            "*the event loop of its module, and the fixture '*' in that of its function: set "
            'asyncio_default_fixture_loop_scope = "module" *',
        ),
        (
            "@pytest.mark.asyncio",
            ["-o", "asyncio_default_test_loop_scope=session"],
            "*the event loop of its session, and the fixture '*' in that of its function: set *",
        ),
    ],
    ids=["anyio's trio", "trio", "module", "session"],
)
def test_another_event_loop_than_the_tests_is_refused(
    project: pytest.Pytester, fixture: str, mark: str, options: list[str], why: str
) -> None:
    project.makeconftest(
        """
        import pytest

        def pytest_configure(config):
            config.addinivalue_line("markers", "trio: ")

        @pytest.fixture
        def anyio_backend(): return "trio"
        """
        if "anyio" in mark
        else "def pytest_configure(config): config.addinivalue_line('markers', 'trio: ')"
    )
    project.makepyfile(f"import pytest\n{mark}\nasync def test_it({fixture}): ...")
    result = run(project, "--api-server", "embedded", *options)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([why])


RIGHTS = """
import pytest
from aioinformer import Client, Resource
from aioinformer.operator import Right
from aioinformer.testing import APIServer, assert_rbac_covers

RIGHTS = [Right("", "configmaps", True, ("get", "list", "delete"))]

@pytest.mark.asyncio
@pytest.mark.parametrize("verb", ["get", "list"])
async def test_rights(verb):
    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        maps = Resource(client, "configmaps")
        await (maps.get("default/a") if verb == "get" else maps.list("default"))
        assert_rbac_covers(server, RIGHTS)
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_rights_that_no_test_needed_are_listed_at_the_end(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr("aioinformer.testing.rbac.usage", Usage())
    pytester.makepyfile(test_rights=RIGHTS)
    result = run(pytester, *([f"-n{workers}"] if workers else []))
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*rights that no test needed*", "delete configmaps"])
    result.stdout.no_fnmatch_line("get configmaps")
