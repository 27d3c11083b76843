#include "journal_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "journal_line.h"

/* ---- names ----------------------------------------------------------------------------------- */

char *gf_cli_journal_path(const char *folder, uint32_t shard, uint32_t shards) {
    const size_t size = strlen(folder) + sizeof GF_CLI_JOURNAL + 32;
    char *path = malloc(size);
    if (path && shards)
        snprintf(path, size, "%s/%s.%" PRIu32 "-of-%" PRIu32, folder, GF_CLI_JOURNAL, shard,
                 shards);
    else if (path)
        snprintf(path, size, "%s/%s", folder, GF_CLI_JOURNAL);
    return path;
}

bool gf_cli_journal_is_name(const char *name) {
    static const char digits[] = "0123456789", of[] = "-of-";
    const size_t plain = strlen(GF_CLI_JOURNAL);
    if (strncasecmp(name, GF_CLI_JOURNAL, plain) != 0)
        return false;
    name += plain;
    if (!*name)
        return true;
    const size_t shard = *name == '.' ? strspn(++name, digits) : 0;
    if (!shard || strncasecmp(name + shard, of, strlen(of)) != 0)
        return false;
    name += shard + strlen(of);
    const size_t shards = strspn(name, digits);
    return shards && !name[shards];
}

/* ---- reading --------------------------------------------------------------------------------- */

/* *cause: an errno if it could not be opened. A pipe of that name is not waited for. */
static gf_status open_to_read(const char *path, FILE **file, int *cause, gf_error *error) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat info;
    *file = NULL;
    *cause = fd < 0 ? errno : 0;
    if (fd < 0)
        return GF_OK;
    const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    if (regular)
        *file = fdopen(fd, "r");
    if (*file)
        return GF_OK;
    close(fd);
    if (regular)
        return gf_set_error(error, GF_FAILED, "%s: out of memory", path);
    return gf_set_error(error, GF_FAILED,
                        "%s: is no regular file; move it away, or name another --out-dir", path);
}

/* The first line. It may be torn, but is then the only one. */
static gf_status check_title(const char *path, const char *line, size_t length, gf_error *error) {
    if (strncmp(GF_CLI_JOURNAL_HEADER, line, length) == 0)
        return GF_OK;
    if (strncmp(GF_CLI_JOURNAL_TITLE, line, strlen(GF_CLI_JOURNAL_TITLE)) == 0)
        return gf_set_error(error, GF_FAILED,
                            "%s: is the record of another version of gpufilter; use that one, name "
                            "another --out-dir, or move the record away, and --force makes the "
                            "outputs again",
                            path);
    return gf_set_error(error, GF_FAILED,
                        "%s: is no record of finished outputs; move it away, or name another "
                        "--out-dir",
                        path);
}

/* A power failure can leave zeros for what had not reached the disk. */
static bool is_nothing(const char *line, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (line[i] && (line[i] != '\n' || i == 0))
            return false;
    return true;
}

/* keep: NULL for the first line alone. */
static gf_status read_lines(gf_cli_journal_file *file, FILE *from, gf_cli_journal_keep keep,
                            void *context, gf_error *error) {
    char *line = NULL;
    size_t room = 0;
    gf_status status = GF_OK;
    while (!status && (keep || !file->begun)) {
        gf_cli_made made;
        const ssize_t length = getline(&line, &room, from);
        /* Without memory for the line there is neither an end nor an error of the file. */
        if (length <= 0 && !feof(from))
            status =
                gf_set_error(error, GF_FAILED, "%s: cannot read: %s", file->path, strerror(errno));
        if (length <= 0)
            break;
        const bool nothing = !file->begun && is_nothing(line, (size_t)length);
        if (!file->begun && !nothing)
            status = check_title(file->path, line, (size_t)length, error);
        /* What has no end is no line yet, and is looked at again the next time. */
        if (line[length - 1] != '\n')
            break;
        file->known += length;
        if (nothing)
            continue;
        line[length - 1] = 0;
        if (file->begun && gf_cli_line_read(line, (size_t)length - 1, &made) &&
            !keep(context, &made))
            status = gf_set_error(error, GF_FAILED, "%s: out of memory", file->path);
        file->begun = true;
    }
    if (!status && ferror(from))
        status = gf_set_error(error, GF_FAILED, "%s: cannot read: %s", file->path, strerror(errno));
    free(line);
    return status;
}

gf_status gf_cli_journal_file_check(const char *path, gf_error *error) {
    char *copy = strdup(path);
    gf_cli_journal_file file = {.path = copy};
    FILE *from = NULL;
    int cause;
    if (!copy)
        return gf_set_error(error, GF_FAILED, "%s: out of memory", path);
    /* What cannot be opened now cannot be written either, and that is told when it is tried. */
    gf_status status = open_to_read(path, &from, &cause, error);
    if (from) {
        status = read_lines(&file, from, NULL, NULL, error);
        fclose(from);
    }
    free(copy);
    return status;
}

gf_status gf_cli_journal_file_read(gf_cli_journal_file *file, gf_cli_journal_keep keep,
                                   void *context, gf_error *error) {
    FILE *from;
    int cause;
    gf_status status = open_to_read(file->path, &from, &cause, error);
    if (!status && cause && cause != ENOENT)
        status = gf_set_error(error, GF_FAILED, "%s: cannot read: %s", file->path, strerror(cause));
    if (!from)
        return status;
    if (fseeko(from, file->known, SEEK_SET) != 0)
        status = gf_set_error(error, GF_FAILED, "%s: cannot read: %s", file->path, strerror(errno));
    else
        status = read_lines(file, from, keep, context, error);
    fclose(from);
    return status;
}
