# SPDX-License-Identifier: BSD-2-Clause
# bash completion for vprof, printed by `vprof completion bash`
_vprof() {
	local i line before= joined=
	local -a words=()
	for ((i = 1; i <= COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == [=:]* || $joined == *[=:] ]] && ((i > 1)); then
			before=$joined joined+=${COMP_WORDS[i]}
			words[${#words[@]} - 1]=$joined
			[[ ${COMP_WORDS[i]} != [=:]* ]] || before=$joined
		else
			before= joined=${COMP_WORDS[i]}
			words+=("$joined")
		fi
	done
	COMPREPLY=()
	while IFS= read -r line; do
		if [[ $line == :files ]]; then
			compopt -o filenames 2>/dev/null
			while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "${joined#"$before"}")
		else
			line=${line%%$'\t'*}
			COMPREPLY+=("${line#"$before"}")
		fi
	done < <("$1" completion words -- "${words[@]}" 2>/dev/null)
	if ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *= ]]; then
		compopt -o nospace 2>/dev/null
	fi
}
complete -F _vprof vprof
