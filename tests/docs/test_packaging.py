"""The metadata of the distribution: the page on an index, the addresses, the versions and the tag of a wheel."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import chainrule as cr

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tools.index_page import long_description, project_urls  # noqa: E402
from tools.pythons import SUPPORTED, pythons  # noqa: E402

README = (ROOT / "README.md").read_text(encoding="utf-8")
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TARGETS = re.compile(r"\]\(([^)]*)\)|(?:src|srcset|href)=\"([^\"]*)\"")


def targets(page: str) -> list[str]:
    prose = re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)
    return [first or second for first, second in TARGETS.findall(prose)]


@pytest.fixture(params=["https://host.example/owner/name.git", "not known"])
def address(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("CHAINRULE_REPOSITORY", request.param)
    return "https://host.example/owner/name" if "host" in request.param else ""


def test_links_of_the_page_on_an_index_are_absolute(address: str) -> None:
    page = long_description(README, "1.2.3")
    assert any("docs/" in target for target in targets(README)), "the README has relative links"
    assert all(target.startswith(("https://", "#")) for target in targets(page))
    files = [target.removeprefix(address) for target in targets(page) if address and target.startswith(address)]
    assert bool(files) == bool(address)
    for path in files:
        kind, version, name = path[1:].split("/", 2)
        assert version == "v1.2.3" and (ROOT / name.partition("#")[0]).exists()
        assert kind == ("raw" if name.endswith((".png", ".svg")) else "blob"), path
    assert "<!--" not in page and "<picture>" not in page
    assert re.findall(r"^```.*?^```$", page, re.DOTALL | re.MULTILINE) == re.findall(
        r"^```.*?^```$", README, re.DOTALL | re.MULTILINE
    ), "code stays unchanged"


def test_addresses(address: str) -> None:
    urls = project_urls("1.2.3")
    assert bool(urls) == bool(address) and all(url.startswith(address) for url in urls.values())
    for url in urls.values():
        if "/blob/" in url:
            assert (ROOT / url.partition("/blob/v1.2.3/")[2]).exists()


@pytest.mark.parametrize(
    "remote, home",
    [
        ("git@host.example:owner/name.git", "https://host.example/owner/name"),
        ("ssh://git@host.example/owner/name", "https://host.example/owner/name"),
        ("https://host.example/owner/name/", "https://host.example/owner/name"),
        ("/somewhere/name", ""),
    ],
)
def test_the_address_is_read_from_git(remote: str, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CHAINRULE_REPOSITORY", "GITHUB_REPOSITORY"):
        monkeypatch.delenv(name, raising=False)
    (ROOT / ".git").exists() or pytest.skip("no checkout")
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: subprocess.CompletedProcess(args, 0, f"{remote}\n"))
    assert project_urls("1").get("Repository", "") == home


def test_versions_agree() -> None:
    classifiers = [c.rpartition(" ")[2] for c in SETTINGS["project"]["classifiers"] if re.search(r":: 3\.\d+$", c)]
    supported = [f"{major}.{minor}" for major, minor in SUPPORTED]
    assert set(classifiers) <= set(supported), "a classifier names a version that nothing tests"
    assert SETTINGS["project"]["requires-python"] == f">={supported[0]}"
    built = SETTINGS["tool"]["cibuildwheel"]["build"].split()
    assert built == [f"cp{name.replace('.', '')}-*" for name in supported]
    workflow = (ROOT / ".github/workflows/checks.yml").read_text(encoding="utf-8")
    assert f"python: [{', '.join(map(repr, supported))}]".replace("'", '"') in workflow
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {cr.__version__}\n" in citation


def test_badges_agree_with_the_metadata() -> None:
    badges = re.findall(r"!\[([^\]]+)\]\(https://img\.shields\.io/badge/([^)]+)\)", README)
    assert README.count("img.shields.io") == len(badges) == 4, (
        "badges are static: the repository's address is not known"
    )
    classifiers = SETTINGS["project"]["classifiers"]
    versions = [c.rpartition(" ")[2] for c in classifiers if re.search(r":: 3\.\d+$", c)]
    status = next(c for c in classifiers if c.startswith("Development Status"))
    assert dict(badges) == {
        f"Licence: {SETTINGS['project']['license']}": f"licence-{SETTINGS['project']['license'].replace('-', '--')}-blue",
        f"Python {', '.join(versions)}": f"Python-{'_%7C_'.join(versions)}-blue",
        f"Status: {status.rpartition(' ')[2].lower()}": "status-alpha-orange",
        "Types: mypy strict": "types-mypy_strict-blue",
    }
    assert SETTINGS["tool"]["mypy"]["strict"] is True


def test_the_readme_links_the_answer_to_every_question() -> None:
    page = (ROOT / "docs" / "support.md").read_text(encoding="utf-8")
    questions = re.findall(r"^## (.+\?)$", page, re.MULTILINE)
    assert len(questions) == 10
    anchors = {re.sub(r"[^\w\s-]", "", question).lower().replace(" ", "-") for question in questions}
    linked = set(re.findall(r"\(docs/support\.md#([\w-]+)\)", README))
    assert linked <= anchors
    assert anchors - linked == {"what-are-the-limits", "what-about-security"}
    assert "(#limits)" in README and "\n## Limits\n" in README and "(SECURITY.md)" in README


def test_this_python_is_found() -> None:
    assert sys.version_info[:2] in pythons()


def test_a_wheel_without_the_extension_has_no_platform(tmp_path: Path) -> None:
    """``make build`` builds and tries such a wheel; here only its tag is computed."""
    bdist_wheel = pytest.importorskip("setuptools.command.bdist_wheel", reason="needs setuptools 70.1")
    program = (
        "import runpy, setuptools\n"
        "made = []\n"
        "setuptools.setup = lambda **options: made.append(options)\n"
        f"runpy.run_path({str(ROOT / 'setup.py')!r})\n"
        "for pure in (True, False):\n"
        "    command = made[0]['cmdclass']['bdist_wheel'](setuptools.Distribution({'name': 'x', 'version': '1', **made[0]}))\n"
        "    command.finalize_options()\n"
        "    command.root_is_pure = pure\n"
        "    print('-'.join(command.get_tag()))\n"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    pure, native = run.stdout.split()
    assert pure == "py3-none-any" and native.startswith(f"cp{sys.version_info[0]}{sys.version_info[1]}-")
    assert bdist_wheel
