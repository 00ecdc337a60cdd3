/*
 * Completion for bash 4.4 and later, with or without the package bash-completion
 *
 * For readline `=` and `:` end words, so --tier=lo arrives in three; they are joined first, and
 * what the joined word has before readline's part is cut from every answer. Files are left to
 * readline (compopt -o default), which knows about blanks, quotes and tildes.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/completion.h"

static void print_offer(enum cli_offer offer, const char *text, const char *name)
{
	printf("offer=%s", name);
	if (!str_is(name, "words") && !str_is(name, "keys"))
		return;
	fputs(" words='", stdout);
	offer_print(offer, text);
	fputs("'", stdout);
	if (offer == OFFER_SETTING) {
		fputs(" pairs='", stdout);
		offer_print_pairs(offer);
		fputs("'", stdout);
	}
}

static void print_flag(const struct cli_flag *flag)
{
	printf("\t--%s", flag->name);
	if (flag->letter)
		printf(" | -%c", flag->letter);
	fputs(") ", stdout);
	print_offer(flag->offer, flag->arg, offer_of_flag(flag));
	puts(" ;;");
}

static void print_command(const struct cli_command *command)
{
	const struct cli_flag *flag;

	printf("\t'%s')\n\t\tflags='", command->name);
	for (size_t i = 0; (flag = cli_flag_at(command, i)); i++) {
		printf("--%s ", flag->name);
		if (flag->letter)
			printf("-%c ", flag->letter);
	}
	printf("' ends=%d\n\t\tif [ \"$2\" = 0 ]; then ", command->takes_argv);
	print_offer(command->offers[0], command->usage, offer_of_word(command, 0));
	fputs("; else ", stdout);
	print_offer(command->offers[1], "", offer_of_word(command, 1));
	puts("; fi ;;");
}

static void print_group(const char *group)
{
	printf("\t%s) words='", group);
	completion_print_commands(group);
	puts("' ;;");
}

static const char helpers[] =
	"_caisson_say() # PREFIX TYPED WORD...: the words that go on from what was typed\n"
	"{\n"
	"\tlocal prefix=$1 typed=$2 word\n"
	"\tshift 2\n"
	"\tfor word in \"$@\"; do\n"
	"\t\t[[ $word == \"$typed\"* ]] || continue\n"
	"\t\tword=$prefix$word\n"
	"\t\tCOMPREPLY+=(\"${word#\"$cut\"}\")\n"
	"\tdone\n"
	"}\n"
	"_caisson_offer() # PREFIX TYPED: answers with $offer, $words, $pairs\n"
	"{\n"
	"\tcase $offer:$2 in\n"
	"\twords:*) _caisson_say \"$1\" \"$2\" $words ;;\n"
	"\tkeys:*=*) _caisson_say \"$1\" \"$2\" $pairs ;;\n"
	"\tkeys:*) compopt -o nospace; _caisson_say \"$1\" \"$2\" $words ;;\n"
	"\tworkspace:*:*) _caisson_say \"$1${2%:*}:\" \"${2##*:}\" ro rw cow ;;\n"
	"\tmount:*:*:*) _caisson_say \"$1${2%:*}:\" \"${2##*:}\" ro rw ;;\n"
	"\tfile:* | mount:*) compopt -o default ;;\n"
	"\tfolder:* | workspace:*) compopt -o dirnames ;;\n"
	"\tvariable:*) _caisson_say \"$1\" \"$2\" $(compgen -e) ;;\n"
	"\tcommand:*) _caisson_say \"$1\" \"$2\" $commands ;;\n"
	"\trun:*)\n"
	"\t\tcompopt -o nosort\n"
	"\t\t_caisson_say \"$1\" \"$2\" $(command caisson runs ls -q "
	"${folder:+\"--run-dir=$folder\"} 2>/dev/null) ;;\n"
	"\tesac\n"
	"}\n"
	"_caisson_program() # INDEX: the rest of the line is another program's\n"
	"{\n"
	"\tif declare -F _command_offset >/dev/null; then\n"
	"\t\t_command_offset \"$1\"\n"
	"\telif ((COMP_CWORD == $1)); then\n"
	"\t\tlocal IFS=$'\\n'\n"
	"\t\tcompopt -o filenames\n"
	"\t\tCOMPREPLY=($(compgen -c -d -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
	"\telse\n"
	"\t\tcompopt -o default\n"
	"\tfi\n"
	"}\n"
	"_caisson_join() # the words as the shell will pass them: line; where each begins: begins\n"
	"{\n"
	"\tlocal i piece glue=\n"
	"\tfor ((i = 0; i <= COMP_CWORD; i++)); do\n"
	"\t\tpiece=${COMP_WORDS[i]}\n"
	"\t\tif ((i == COMP_CWORD)) && [[ -z $piece && ${COMP_LINE:COMP_POINT-1:1} == [[:blank:]] "
	"]]; then\n"
	"\t\t\tglue=\n"
	"\t\tfi\n"
	"\t\tif [[ $i -gt 0 && ( $glue || $piece == [=:]* ) ]]; then\n"
	"\t\t\tline[${#line[@]} - 1]+=$piece\n"
	"\t\telse\n"
	"\t\t\tline+=(\"$piece\") begins+=($i)\n"
	"\t\tfi\n"
	"\t\t[[ $piece && -z ${piece//[=:]/} ]] && glue=1 || glue=\n"
	"\tdone\n"
	"\tcur=${line[${#line[@]} - 1]} piece=${COMP_WORDS[COMP_CWORD]}\n"
	"\t[[ -z ${piece//[=:]/} ]] && piece=\n"
	"\tcut=${cur%\"$piece\"}\n"
	"}\n"
	"_caisson_letters() # -qn: the letter whose value is the next word: flag\n"
	"{\n"
	"\tlocal i\n"
	"\tfor ((i = 1; i < ${#1}; i++)); do\n"
	"\t\t_caisson_value \"-${1:i:1}\"\n"
	"\t\t[ -n \"$offer\" ] || continue\n"
	"\t\t((i == ${#1} - 1)) && flag=-${1:i:1}\n"
	"\t\treturn\n"
	"\tdone\n"
	"}\n";

static const char driver[] =
	"_caisson()\n"
	"{\n"
	"\tlocal line=() begins=() cur= cut= commands= folder= flag= closed= given=0 at=2 i word "
	"last\n"
	"\tlocal command words= pairs= offer= flags= ends=0\n"
	"\tCOMPREPLY=()\n"
	"\t_caisson_join\n"
	"\tlast=$((${#line[@]} - 1)) command=${line[1]}\n"
	"\t_caisson_group ''\n"
	"\tcommands=$words\n"
	"\tif ((last <= 1)); then\n"
	"\t\t_caisson_say '' \"$cur\" $commands\n"
	"\t\treturn\n"
	"\tfi\n"
	"\t_caisson_group \"$command\"\n"
	"\tif [ -n \"$words\" ]; then\n"
	"\t\tif ((last == 2)); then\n"
	"\t\t\t_caisson_say '' \"$cur\" $words\n"
	"\t\t\treturn\n"
	"\t\tfi\n"
	"\t\tcommand=\"$command ${line[2]}\" at=3\n"
	"\tfi\n"
	"\t_caisson_command \"$command\" 0\n"
	"\t# After a -- that is not the end of ours, $closed$word is no flag, whatever it is.\n"
	"\tfor ((i = at; i < last; i++)); do\n"
	"\t\tword=${line[i]}\n"
	"\t\tif [ -n \"$flag\" ]; then\n"
	"\t\t\t[ \"$flag\" = --run-dir ] && folder=$word\n"
	"\t\t\tflag=\n"
	"\t\t\tcontinue\n"
	"\t\tfi\n"
	"\t\tcase $closed$word in\n"
	"\t\t--)\n"
	"\t\t\tclosed=1\n"
	"\t\t\t((ends)) && break ;;\n"
	"\t\t--run-dir=*) folder=${word#*=} ;;\n"
	"\t\t--*=*) ;;\n"
	"\t\t--*)\n"
	"\t\t\t_caisson_value \"$word\"\n"
	"\t\t\t[ -n \"$offer\" ] && flag=$word ;;\n"
	"\t\t-?*) _caisson_letters \"$word\" ;;\n"
	"\t\t*)\n"
	"\t\t\t((ends)) && break\n"
	"\t\t\tgiven=$((given + 1)) ;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"\tif ((ends && i < last)); then\n"
	"\t\t_caisson_program $((begins[i] + ${closed:-0}))\n"
	"\telif [ -n \"$flag\" ]; then\n"
	"\t\t_caisson_value \"$flag\"\n"
	"\t\t_caisson_offer '' \"$cur\"\n"
	"\telif [[ -z $closed && $cur == --*=* ]]; then\n"
	"\t\t_caisson_value \"${cur%%=*}\"\n"
	"\t\t_caisson_offer \"${cur%%=*}=\" \"${cur#*=}\"\n"
	"\telif [[ -z $closed && $cur == -* ]]; then\n"
	"\t\t_caisson_say '' \"$cur\" $flags\n"
	"\telif ((ends)); then\n"
	"\t\t_caisson_program ${begins[last]}\n"
	"\telse\n"
	"\t\t_caisson_command \"$command\" $given\n"
	"\t\t_caisson_offer '' \"$cur\"\n"
	"\tfi\n"
	"}\n"
	"complete -F _caisson caisson\n";

void completion_bash(void)
{
	puts("# bash completion of caisson; made by `caisson completion bash`\n"
	     "_caisson_value() # FLAG: what its value is: offer, words, pairs; nothing without "
	     "one\n"
	     "{\n\toffer= words= pairs=\n\tcase $1 in");
	completion_each_valued(print_flag);
	puts("\tesac\n}\n"
	     "_caisson_command() # COMMAND COUNT: flags, ends; offer for the word after COUNT "
	     "others\n"
	     "{\n\tflags= ends=0 offer= words= pairs=\n\tcase $1 in");
	for (const struct cli_command *c = cli_commands; c->name; c++)
		print_command(c);
	fputs("\tesac\n}\n_caisson_group() # WORD: the words that may follow it\n"
	      "{\n\twords=\n\tcase $1 in\n\t'') words='",
	      stdout);
	completion_print_commands(NULL);
	puts("' ;;");
	completion_each_group(print_group);
	puts("\tesac\n}");
	fputs(helpers, stdout);
	fputs(driver, stdout);
}
