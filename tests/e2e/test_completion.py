# SPDX-License-Identifier: BSD-2-Clause
"""What bash offers for penstock's command line is what there is."""

import re
import subprocess

from penstock import TOP, run_penstock

COMPLETION = TOP / "conf" / "completion.bash"


def offered(folder, *words):
    """What bash would complete the last word to."""
    script = """
. "$1"; shift
COMP_WORDS=(penstock "$@")
COMP_CWORD=$#
compopt() { :; }
_penstock
printf '%s\\n' "${COMPREPLY[@]}"
complete -p penstock
"""
    r = subprocess.run(["bash", "-c", script, "bash", str(COMPLETION), *words],
                       cwd=folder, stdout=subprocess.PIPE, text=True,
                       timeout=10, check=True)
    *words, how = r.stdout.splitlines()
    assert how == "complete -F _penstock penstock"
    return [w for w in words if w]


def test_every_option_is_offered_and_no_other(tmp_path):
    text = run_penstock("-h").stdout
    options = re.findall(r"^  (-\w)", text, re.M)
    assert len(options) >= 5
    assert sorted(offered(tmp_path, "-")) == sorted(options)
    assert sorted(offered(tmp_path, "")) == sorted(options)


def test_a_file_follows_c(tmp_path):
    (tmp_path / "one file.conf").write_text("")
    (tmp_path / "two.conf").write_text("")
    assert offered(tmp_path, "-c", "o") == ["one file.conf"]
    assert len(offered(tmp_path, "-c", "")) == 2
