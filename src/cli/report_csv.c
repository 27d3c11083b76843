/* A table as RFC 4180 has it, with the line ends of this system. */
#include <string.h>

#include "cli.h"
#include "report.h"

static void print_field(FILE *file, size_t column, const char *text, bool shown) {
    const bool quoted = text[strcspn(text, ",\"\r\n")];
    if (column > 0)
        putc(',', file);
    if (quoted)
        putc('"', file);
    for (size_t size; *text; text += size) {
        const size_t printable = gf_printable(text);
        size = printable ? printable : 1;
        if (*text == '"')
            putc('"', file);
        if (shown && !printable)
            putc('?', file);
        else
            fwrite(text, 1, size, file);
    }
    if (quoted)
        putc('"', file);
}

void gf_cli_report_csv_header(FILE *file, const gf_result *result, const char *input) {
    const gf_table *table = gf_result_table(result, 0);
    const size_t shift = input ? 1 : 0;
    if (input)
        print_field(file, 0, "file", false);
    for (size_t c = 0; c < table->column_count; c++)
        print_field(file, shift + c, table->columns[c].name, false);
    putc('\n', file);
}

void gf_cli_report_csv(FILE *file, const gf_result *result, const char *input, bool shown) {
    const gf_table *table = gf_result_table(result, 0);
    const size_t shift = input ? 1 : 0;
    for (uint64_t row = 0; row < table->row_count; row++) {
        if (input)
            print_field(file, 0, input, shown);
        for (size_t c = 0; c < table->column_count; c++) {
            gf_value value = gf_result_cell(result, 0, row, c);
            char number[40];
            if (value.type != GF_VALUE_TEXT)
                gf_value_format(&value, number, sizeof number);
            print_field(file, shift + c, value.type == GF_VALUE_TEXT ? value.text : number, false);
        }
        putc('\n', file);
    }
}
