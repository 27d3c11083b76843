/* A table as RFC 4180 has it, with the line ends of this system. */
#include <string.h>

#include "report.h"

static void print_field(FILE *file, size_t column, const char *text) {
    if (column > 0)
        putc(',', file);
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, file);
        return;
    }
    putc('"', file);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', file);
        putc(*text, file);
    }
    putc('"', file);
}

void gf_cli_report_csv_header(FILE *file, const gf_result *result, const char *input) {
    const gf_table *table = gf_result_table(result, 0);
    const size_t shift = input ? 1 : 0;
    if (input)
        print_field(file, 0, "file");
    for (size_t c = 0; c < table->column_count; c++)
        print_field(file, shift + c, table->columns[c].name);
    putc('\n', file);
}

void gf_cli_report_csv(FILE *file, const gf_result *result, const char *input) {
    const gf_table *table = gf_result_table(result, 0);
    const size_t shift = input ? 1 : 0;
    for (uint64_t row = 0; row < table->row_count; row++) {
        if (input)
            print_field(file, 0, input);
        for (size_t c = 0; c < table->column_count; c++) {
            gf_value value = gf_result_cell(result, 0, row, c);
            char number[40];
            if (value.type != GF_VALUE_TEXT)
                gf_value_format(&value, number, sizeof number);
            print_field(file, shift + c, value.type == GF_VALUE_TEXT ? value.text : number);
        }
        putc('\n', file);
    }
}
