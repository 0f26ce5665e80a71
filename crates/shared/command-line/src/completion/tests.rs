//! Scripts for a made-up program. That shells read and obey them is tested with the real tables from outside.

use super::*;
use crate::{Kind, Names, OptionOutline};

fn commands() -> Vec<CommandOutline> {
    let option = |long, short, kind, text: &str| OptionOutline {
        group: "",
        names: Names { long, short, meaning: "" },
        kind,
        default: "",
        text: text.to_owned(),
        works: true,
    };
    let boil = vec![
        option(
            "fuel",
            None,
            Kind::Choice(&["gas", "wood"]),
            "What [it] burns: it's hot. And more.",
        ),
        option("loud", Some('q'), Kind::Switch, "Whistle."),
        option("litres", Some('l'), Kind::Number, "How much."),
    ];
    let command = |path, words, options| CommandOutline {
        path,
        summary: "Boils",
        words,
        more_words: (path == "kettle pour").then_some("show cups"),
        options,
    };
    vec![
        command("kettle", &["--help"][..], Vec::new()),
        command("kettle boil", &[], boil),
        command("kettle pour", &["all"], Vec::new()),
    ]
}

#[test]
fn every_shell_is_known_by_name() {
    for name in Shell::NAMES {
        let script = Shell::named(name).expect("known").completion(&commands());
        assert!(script.contains(&format!("Made by `galatea completions {name}`.")), "{script}");
    }
    assert_eq!(Shell::named("tcsh"), None);
}

#[test]
fn the_bash_script_is_as_expected() {
    let script = Shell::Bash.completion(&commands());
    for line in [
        "    'kettle boil' | 'kettle pour') return 0 ;;",
        "    'kettle') echo 'boil pour --help' ;;",
        "    'kettle pour') echo 'all'; _galatea_more show cups ;;",
        "    'kettle boil') echo '--fuel -q --loud -l --litres' ;;",
        "    'kettle boil --fuel') echo 'gas wood' ;;",
        "    'kettle boil -l' | 'kettle boil --litres') echo '' ;;",
        "complete -o default -F _galatea_complete kettle",
    ] {
        assert!(script.lines().any(|l| l == line), "{line}\n{script}");
    }
}

#[test]
fn the_zsh_script_is_as_expected() {
    let script = Shell::Zsh.completion(&commands());
    assert!(script.starts_with("#compdef kettle\n"), "{script}");
    for line in [
        "        boil) shift words; (( CURRENT-- )); _kettle_boil; return ;;",
        "            'boil:Boils'",
        "    local -a offered=(all ${(f)\"$(kettle show cups 2>/dev/null)\"})",
        "        '*:word:_kettle_pour_words'",
        "        '*--fuel=[What it burns - its hot]:value:(gas wood)' \\",
        "        '*-q[Whistle]' \\",
        "        '*-l+[How much]:value: ' \\",
    ] {
        assert!(script.lines().any(|l| l == line), "{line}\n{script}");
    }
}

#[test]
fn the_fish_script_is_as_expected() {
    let script = Shell::Fish.completion(&commands());
    for line in [
        "complete -c kettle -n 'not __fish_seen_subcommand_from boil pour' -f -a boil -d 'Boils'",
        "complete -c kettle -n '__fish_seen_subcommand_from pour' -f -a '(kettle show cups 2>/dev/null)'",
        "complete -c kettle -n '__fish_seen_subcommand_from boil' -l fuel -x -a 'gas wood' -d 'What [it] burns: its hot'",
        "complete -c kettle -n '__fish_seen_subcommand_from boil' -s q -l loud -d 'Whistle'",
        "complete -c kettle -n '__fish_seen_subcommand_from boil' -s l -l litres -x -d 'How much'",
    ] {
        assert!(script.lines().any(|l| l == line), "{line}\n{script}");
    }
}
