/* batch_script.c - see batch_script.h. */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/batch_script.h"

/* ---- Words of a shell ----------------------------------------------------------------- */

static bool is_plain(const char *word)
{
	return *word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789_./:=,+@%-")];
}

static void put_word(const char *word, FILE *out)
{
	if (is_plain(word)) {
		fputs(word, out);
		return;
	}
	putc('\'', out);
	for (; *word; word++)
		if (*word == '\'')
			fputs("'\\''", out);
		else
			putc(*word, out);
	putc('\'', out);
}

/* The same in a comment, which ends with its line. */
static void put_remark(const char *word, FILE *out)
{
	char line[256];
	size_t n = 0;

	for (; *word && n < sizeof(line) - 1; word++)
		line[n++] = iscntrl((unsigned char)*word) ? '?' : *word;
	line[n] = '\0';
	putc(' ', out);
	put_word(line, out);
}

/* ---- The script ------------------------------------------------------------------------- */

static void put_words(const char *text, FILE *out)
{
	char *copy = strdup(text), *rest = copy, *word;

	while ((word = strsep(&rest, " ")))
		if (*word) {
			putc(' ', out);
			put_word(word, out);
		}
	free(copy);
}

static void put_head(const struct batch_job *job, FILE *out)
{
	fprintf(out, "#!/bin/sh\n# A campaign on %u node%s: sbatch FILE.  Written by railgauge %s, "
		"to be read and edited:\n#\trailgauge", job->nodes, job->nodes == 1 ? "" : "s",
		PACKAGE_VERSION);
	for (int i = 0; i < job->argc; i++)
		put_remark(job->argv[i], out);
	fputs("\n#\n"
	      "# Every row that has ended is kept in $out, whatever ends the job: its time limit, preemption,\n"
	      "# scancel, a node that dies.  A job that Slurm starts again, or that you submit again with the\n"
	      "# same $out, measures what is missing.\n", out);
}

static void put_options(const struct batch_job *job, FILE *out)
{
	fprintf(out, "#SBATCH --job-name=railgauge\n#SBATCH --nodes=%u\n"
		"#SBATCH --ntasks-per-node=%u\n#SBATCH --exclusive\n#SBATCH --time=%s\n",
		job->nodes, job->ranks_per_node, job->time);
	if (job->partition)
		fprintf(out, "#SBATCH --partition=%s\n", job->partition);
	if (job->account)
		fprintf(out, "#SBATCH --account=%s\n", job->account);
	if (job->repeats > 1)
		fprintf(out, "# Repeats, one at a time (%%1): each has an allocation and a directory of its own.\n"
			"#SBATCH --array=1-%u%%1\n", job->repeats);
	fprintf(out, "#SBATCH --output=railgauge-%s.out\n#SBATCH --open-mode=append\n"
		"# Again after preemption, or when a node has died:\n#SBATCH --requeue\n"
		"# SIGUSR1 to this script, so many seconds before the time limit:\n"
		"#SBATCH --signal=B:USR1@60\n\n", job->repeats > 1 ? "%A_%a" : "%j");
}

static void put_settings(const struct batch_job *job, FILE *out)
{
	fputs("railgauge=", out);
	put_word(job->railgauge, out);
	fputs("\n# A directory that all nodes share.\nout=", out);
	if (*job->out != '/')
		fputs("${SLURM_SUBMIT_DIR:-.}/", out);
	put_word(job->out, out);
	if (job->repeats > 1)
		fputs("/${SLURM_ARRAY_TASK_ID:-1}", out);
	fprintf(out, "\n# %s  {n}: the number of ranks.\nlauncher=", job->launcher_why);
	put_word(job->launcher, out);
	fprintf(out, "\nranks=${SLURM_NTASKS:-%u}\n\n", job->nodes * job->ranks_per_node);
}

static void put_run(const struct batch_job *job, FILE *out)
{
	fputs("\"$railgauge\" run --out \"$out\" --launcher \"$launcher\" --ranks \"$ranks\"", out);
	if (!job->program)
		fprintf(out, " --preset %s", job->preset);
	if (job->launches)
		fprintf(out, " --launches %u", job->launches);
	if (job->run_words)
		put_words(job->run_words, out);
	if (job->program)
		fputs(" --", out);
	for (int i = 0; job->program && job->program[i]; i++) {
		putc(' ', out);
		put_word(job->program[i], out);
	}
	fputs(" &\n", out);
}

void batch_script_write(const struct batch_job *job, FILE *out)
{
	put_head(job, out);
	put_options(job, out);
	put_settings(job, out);
	fputs("# Launches that have ended, and rows, also of one that was cut off.\n"
	      "finished() {\n"
	      "\tcat \"$out/campaign.jsonl\" \"$out\"/records/*.jsonl 2>/dev/null |\n"
	      "\t\tgrep -Ec '\"type\": *\"(launch|row)\"'\n"
	      "}\n"
	      "before=$(finished)\n"
	      "mkdir -p \"${out%/*}\" || exit\n\n"
	      "limit=\n"
	      "trap 'limit=reached; kill -TERM $! 2>/dev/null' USR1\n"
	      "trap 'kill -TERM $! 2>/dev/null' TERM\n", out);
	put_run(job, out);
	fputs("run=$!\nwait \"$run\"\n"
	      "code=$?\n"
	      "# wait returns at a signal, too; the campaign then writes its summary and ends.\n"
	      "while kill -0 \"$run\" 2>/dev/null; do\n"
	      "\twait \"$run\"\n"
	      "\tcode=$?\n"
	      "done\n\n"
	      "# The limit came first: once more from here on, unless nothing was finished this time.\n"
	      "if [ -n \"$limit\" ] && [ \"$code\" -ne 0 ] && [ \"$(finished)\" -gt \"$before\" ]; then\n"
	      "\tscontrol requeue \"$SLURM_JOB_ID\"\n"
	      "fi\n"
	      "exit \"$code\"\n", out);
}
