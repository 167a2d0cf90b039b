# Completion of penstock's command line, for bash.
_penstock()
{
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}

	COMPREPLY=()
	if [ "$before" = -c ]; then
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
	fi
	mapfile -t COMPREPLY < <(compgen -W "-c -t -T -V -h" -- "$word")
}
complete -F _penstock penstock
