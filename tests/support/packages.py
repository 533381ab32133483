# SPDX-License-Identifier: BSD-2-Clause
"""The packages that cpack makes of the build."""
import os
import pathlib
import re

BUILD = pathlib.Path(os.environ["VPROF_BUILD"])


def sanitizer():
    """What the build is instrumented with; empty: nothing."""
    return re.search(r"^VPROF_SANITIZE:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M)[1]


def make(test, kind, build=BUILD):
    """The files of vprof and of vprof-agent, of DEB or RPM."""
    folder = test.folder / "packages"
    test.run_program("cpack", "-G", kind, "-B", folder, cwd=build, timeout=300)
    made = sorted(folder.glob(f"*.{kind.lower()}"), key=lambda file: "agent" in file.name)
    test.assertEqual(len(made), 2, made)
    return made


def changed(test, deb, version, change=lambda tree: None):
    """The same Debian package as another version; `change` is called with its files, and control information in DEBIAN."""
    tree = test.folder / f"{deb.stem}-{version}"
    test.run_program("dpkg-deb", "--raw-extract", deb, tree)
    control = tree / "DEBIAN" / "control"
    control.write_text(re.sub(r"(?m)^Version: .*", f"Version: {version}", control.read_text()))
    (tree / "DEBIAN" / "md5sums").unlink()
    change(tree)
    made = test.folder / f"{tree.name}.deb"
    test.run_program("dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", tree, made)
    return made
