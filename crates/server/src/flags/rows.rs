use super::{Flag, Kind, Parsed, all, value::parse_bool};

/// The rows of the option table: every flag that has one, with the value in force.
pub fn rows(flags: &Parsed) -> Vec<(String, String)> {
    let told = all().filter_map(|flag| Some((flag, flag.row?)));
    told.flat_map(|(flag, row)| rows_of(flags, flag, row)).collect()
}

fn rows_of(flags: &Parsed, flag: &Flag, row: &str) -> Vec<(String, String)> {
    if flag.kind == Kind::List {
        let values = flags.all(flag.name).enumerate();
        return values
            .map(|(i, value)| (row.replace("{}", &i.to_string()), value.to_owned()))
            .collect();
    }
    vec![(row.to_owned(), shown(flags, flag))]
}

/// As Triton shows it: 0 and 1 for no and yes, modes in capitals.
fn shown(flags: &Parsed, flag: &Flag) -> String {
    let text = flags.text(flag.name);
    match flag.kind {
        Kind::Switch => u8::from(flags.switch(flag.name)).to_string(),
        Kind::Bool => u8::from(parse_bool(text).unwrap_or_default()).to_string(),
        Kind::Choice(_) if flag.name == "model-control-mode" => {
            format!("MODE_{}", text.to_ascii_uppercase())
        }
        Kind::Choice(_) => text.to_ascii_uppercase(),
        _ => text.to_owned(),
    }
}
