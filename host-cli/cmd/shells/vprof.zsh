#compdef vprof
# SPDX-License-Identifier: BSD-2-Clause
# zsh completion for vprof, printed by `vprof completion zsh`
_vprof() {
	local line files=
	local -a candidates
	while IFS= read -r line; do
		if [[ $line == :files ]]; then
			files=yes
		else
			candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
		fi
	done < <("${(Q)words[1]}" completion words -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)
	local -a unfinished=(${(M)candidates:#*=:*})
	candidates=(${candidates:#*=:*})
	((${#candidates} == 0)) || _describe vprof candidates
	((${#unfinished} == 0)) || _describe vprof unfinished -S ''
	if [[ -n $files ]]; then
		[[ $PREFIX == --*=* ]] && compset -P '*='
		_files
	fi
}
if [[ $funcstack[1] == _vprof ]]; then
	_vprof "$@"
else
	compdef _vprof vprof
fi
