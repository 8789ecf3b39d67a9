import io

from rich.console import Console

from accel_micro.report.printing import Line, chosen, paragraph, print_lines, trimmed

LINES = [Line("a table  ", "bold"), Line("[b] is text")]


def printed(terminal: bool) -> str:
    stream = io.StringIO()
    print_lines(LINES, Console(file=stream, force_terminal=terminal, width=20, color_system="standard"))
    return stream.getvalue()


def test_a_pipe_gets_no_styles_and_no_spaces_at_ends() -> None:
    assert printed(terminal=False) == "a table\n[b] is text\n"


def test_a_terminal_gets_styles() -> None:
    assert "\x1b[1ma table" in printed(terminal=True)
    assert "[b] is text" in printed(terminal=True)


def test_what_is_printed_within_ends_without_spaces_in_a_pipe_and_as_it_is_on_a_terminal() -> None:
    for terminal, shown in ((False, "a\n\nb\n"), (True, "a  \n\nb \n")):
        stream = io.StringIO()
        console = Console(file=stream, force_terminal=terminal, width=20, color_system=None)
        with trimmed(console):
            console.print("a  \n\nb ")
        assert stream.getvalue() == shown


def test_what_a_stream_cannot_write_becomes_a_question_mark() -> None:
    raw = io.BytesIO()
    stream = chosen(io.TextIOWrapper(raw, encoding="ascii"))
    stream.write("1 → 2")
    stream.flush()
    assert raw.getvalue() == b"1 ? 2"


def test_further_lines_of_a_paragraph_stand_below_its_first() -> None:
    found = list(paragraph("one two three four five six seven", 20, "·  ", "dim"))
    assert [line.text for line in found] == ["·  one two three", "   four five six", "   seven"]
    assert {line.style for line in found} == {"dim"}
