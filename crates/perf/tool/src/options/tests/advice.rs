//! What is suggested for a mistyped command line.

use super::parse_words;

/// What stands behind the pointer to the help, or in the error itself.
fn advice(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let message = parse_words(&words).0.expect_err(line).message;
    let behind = message.lines().find(|line| line.starts_with("Did you mean "));
    let within = message.split_once("; did you mean ").map(|(_, rest)| rest.lines().next());
    behind
        .or(within.flatten())
        .unwrap_or_default()
        .trim_start_matches("Did you mean ")
        .trim_end_matches('?')
        .trim_matches('\'')
        .to_owned()
}

#[test]
fn a_misspelled_option_gets_a_suggestion() {
    for (line, expected) in [
        ("-m x --concurency-range 4", "--concurrency-range"),
        ("-m x --concurency_range=4", "--concurrency-range"),
        ("-m x -concurrency-range 4", "--concurrency-range"),
        ("-m x --measurment-interval 4", "--measurement-interval"),
        ("-m x -i htttp", "-i http"),
        ("-m x -igprc", "-i grpc"),
        ("-m x --input-data randm", "--input-data random"),
        ("-m x --input-data=zeros", "--input-data zero"),
        ("-m x --shared-memory sytem", "--shared-memory system"),
        ("-m x --request-distribution posson", "--request-distribution poisson"),
        ("-m x --measurement-mode time", "--measurement-mode time_windows"),
        ("-m x --service-kind Triton", "--service-kind triton"),
        ("-m x --trace-level off", "--trace-level OFF"),
        ("-m x --percentile 95%", "--percentile 95"),
        ("-m x --percentile p95", "--percentile 95"),
        ("-m x --concurrency-range 1-4", "--concurrency-range 1:4"),
        ("-m x --concurrency-range 1..4", "--concurrency-range 1:4"),
        ("-m x --concurrency-range 100,400,10", "--concurrency-range 100:400:10"),
        ("-m x --request-rate-range 5-9", "--request-rate-range 5:9"),
        ("-m x -p 500ms", "-p 500"),
        ("--model x", "-m <model>"),
        ("-m x --url here", "-u <host:port>"),
        ("-m x --protocol=grpc", "-i http or -i grpc"),
        ("-m x --batch_size 4", "-b <n>"),
        ("-m x --num-prompts 5", "--request-count <n>"),
        ("simple", "-m simple"),
        ("simple -b 2", "-m simple"),
    ] {
        assert_eq!(advice(line), expected, "{line}");
    }
}

#[test]
fn an_unrelated_word_gets_no_suggestion() {
    for line in [
        "",
        "-m x -i carrier-pigeon",
        "-m x --foo",
        "-m x --concurrency-range -1",
        "-m x --concurrency-range 1.5",
        "-m x --concurrency-range 1:-2",
        "-m x --percentile x",
        "-m x -p foobar",
        "-m x -b 0",
    ] {
        assert_eq!(advice(line), "", "{line}");
    }
}
