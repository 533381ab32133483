# SPDX-License-Identifier: BSD-2-Clause
# fish completion for vprof, printed by `vprof completion fish`
function __vprof_words
	set -l typed (commandline -opc)
	set -l word (commandline -ct | string collect --allow-empty)
	for line in ($typed[1] completion words -- $typed[2..-1] $word 2>/dev/null)
		if test $line = :files
			set -l option (string match -r -- '^--[^=]*=' $word | string collect --allow-empty)
			for file in (__fish_complete_path (string replace -r -- '^--[^=]*=' '' $word))
				echo $option$file
			end
		else
			echo $line
		end
	end
end
complete -c vprof -f -a '(__vprof_words)'
