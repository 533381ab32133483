# SPDX-License-Identifier: BSD-2-Clause
"""Files that other projects have published, to check ours with: packages of npm's, PyPI's and Debian's registries, unpacked
into the user's cache folder at the first call and found there again without a network."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import harness

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "vprof" / "packages"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def cached(name, fetch, *arguments):
    """The folder `name`, which fetch(folder, *arguments) has filled; without a network, a visible skip."""
    place = CACHE / name
    if not place.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE, prefix="fetch.") as folder:
            new = pathlib.Path(folder) / "new"
            new.mkdir()
            try:
                fetch(new, *arguments)
            except (OSError, subprocess.SubprocessError) as error:
                harness.need(False, f"{name} is not in the cache and cannot be fetched: {error}")
            try:
                new.rename(place)
            except OSError:  # another process was faster
                if not place.is_dir():
                    raise
    return place


def run(folder, *command, seconds=240):
    subprocess.run([str(word) for word in command], cwd=folder, check=True, timeout=seconds, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def fetch_npm(folder, packages):
    run(folder, "npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts", "--omit=dev", *packages)


def npm(*packages):
    """The node_modules with packages NAME@VERSION."""
    harness.need_program("npm", "npm")
    name = "npm-" + "+".join(package.replace("/", "-") for package in packages)
    return cached(name, fetch_npm, packages) / "node_modules"


def fetch_pypi(folder, requirement):
    run(folder, sys.executable, "-m", "pip", "install", "--no-deps", "--only-binary=:all:", "--target", folder, requirement)


def pypi(requirement):
    """A folder for PYTHONPATH with the package NAME==VERSION, without what that needs."""
    return cached("pypi-" + requirement.replace("==", "-"), fetch_pypi, requirement)


def fetch_debian(folder, package, version, suite):
    apt = folder / "apt"
    (apt / "lists" / "partial").mkdir(parents=True)
    (apt / "cache" / "archives" / "partial").mkdir(parents=True)
    (apt / "sources.list").write_text(f"deb [signed-by={KEYRING}] http://deb.debian.org/debian {suite} main\n")
    options = [f"-o{name}={value}" for name, value in {
        "Dir::Etc::sourcelist": apt / "sources.list", "Dir::Etc::sourceparts": "-", "Dir::State::lists": apt / "lists",
        "Dir::Cache": apt / "cache", "Acquire::Languages": "none"}.items()]
    run(folder, "apt-get", *options, "update")
    run(folder, "apt-get", *options, "download", f"{package}={version}")
    run(folder, "dpkg", "-x", *folder.glob("*.deb"), folder)
    shutil.rmtree(apt)


def debian(package, version, suite):
    """The files of a version (an asterisk stands for anything) of a package in a suite other than the machine's own."""
    harness.need_program("apt-get", "apt")
    return cached(f"debian-{package}-{version.strip('*')}", fetch_debian, package, version, suite)
