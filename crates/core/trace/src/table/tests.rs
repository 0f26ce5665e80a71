//! Which value of a setting counts: that of the model, of the server, or of the start.

use galatea_types::Protocol;
use proptest::prelude::*;

use super::*;
use crate::{change::NumberField, sink::Unwritten};

const ON: Levels = Levels { timestamps: true, tensors: false };

fn make() -> impl FnMut(Settings) -> Arc<Setting> {
    let sink = Arc::new(Unwritten);
    move |settings| Arc::new(Setting::new(0, settings, settings.can_trace(true), sink.clone()))
}

fn table(start: Settings) -> Table {
    Table::new(start, &mut make())
}

fn on() -> Settings {
    Settings { levels: ON, rate: 1, ..Settings::default() }
}

fn change(fields: &[(NumberField, &str)]) -> SettingsChange {
    let mut change = SettingsChange::default();
    for (field, text) in fields {
        change.set(*field, text, Protocol::Http).expect("a number");
    }
    change
}

impl Table {
    fn after(&self, model: Option<&str>, change: &SettingsChange) -> Result<Self, InvalidSettings> {
        self.changed(model, change, true, &mut make())
    }

    fn seen(&self, model: Option<&str>) -> Settings {
        self.setting(model).settings()
    }
}

#[test]
fn a_model_follows_the_server_in_all_but_its_own_values() {
    let table = table(on());
    let table = table.after(Some("m"), &change(&[(NumberField::Rate, "7")])).expect("good");
    let table =
        table.after(None, &change(&[(NumberField::Rate, "9"), (NumberField::LogFrequency, "4")]));
    let table = table.expect("good");
    assert_eq!((table.seen(None).rate, table.seen(Some("m")).rate), (9, 7));
    assert_eq!(table.seen(Some("m")).log_frequency, 4);
    let mut back = SettingsChange::default();
    back.clear(NumberField::Rate);
    let table = table.after(Some("m"), &back).expect("good");
    assert!(Arc::ptr_eq(table.setting(Some("m")), table.setting(None)));
    let table = table.after(None, &back).expect("good");
    assert_eq!(table.seen(None), Settings { log_frequency: 4, ..on() });
}

#[test]
fn every_change_starts_the_counter_again_and_a_count_of_the_start_with_it() {
    let table = table(Settings { rate: 2, count: 3, ..on() });
    let setting = table.setting(None).clone();
    assert!(!setting.choose() && setting.choose() && !setting.choose());
    assert_eq!(table.seen(None).count, 2);
    let model = table.after(Some("m"), &change(&[(NumberField::LogFrequency, "1")])).expect("good");
    assert_eq!(model.seen(Some("m")).count, 2, "a copy of what is left");
    assert!(setting.choose(), "the server's counter goes on");
    let again = table.after(None, &SettingsChange::default()).expect("good");
    assert_eq!(again.seen(None).count, 3);
    assert!(!again.setting(None).choose());
}

#[test]
fn a_count_that_is_used_up_leaves_the_other_settings_changeable() {
    let table = table(on());
    let table = table.after(None, &change(&[(NumberField::Count, "1")])).expect("good");
    assert!(table.can_trace() && table.setting(None).choose() && !table.can_trace());
    let table = table.after(None, &change(&[(NumberField::LogFrequency, "5")])).expect("good");
    assert_eq!(table.seen(None), Settings { count: 0, log_frequency: 5, ..on() });
    let mut levels = SettingsChange::default();
    levels.set_levels(&["TENSORS"]).expect("good");
    assert_eq!(table.after(None, &levels).err(), Some(InvalidSettings::CountUsedUp));
    levels.set(NumberField::Count, "2", Protocol::Http).expect("good");
    assert!(table.after(None, &levels).expect("good").can_trace());
    let zero = table.after(Some("m"), &change(&[(NumberField::Count, "0")]));
    assert_eq!(zero.err(), Some(InvalidSettings::NoCount));
}

#[test]
fn a_refused_change_changes_nothing() {
    let table = table(on());
    let zero = change(&[(NumberField::Rate, "0"), (NumberField::LogFrequency, "8")]);
    assert_eq!(table.after(None, &zero).err(), Some(InvalidSettings::NoRate));
    assert_eq!(table.seen(None), on());
    let off = Table::new(Settings::default(), &mut make());
    assert!(off.after(None, &zero).is_ok(), "a level that is OFF allows any rate");
    let mut levels = SettingsChange::default();
    levels.set_levels(&["TIMESTAMPS"]).expect("good");
    let no_file = off.changed(None, &levels, false, &mut make());
    assert_eq!(no_file.err(), Some(InvalidSettings::NoFile));
}

#[test]
fn a_model_that_cannot_follow_the_server_traces_nothing_until_it_can() {
    let off = Table::new(Settings { levels: Levels::OFF, ..on() }, &mut make());
    let mut levels = SettingsChange::default();
    levels.set_levels(&["TIMESTAMPS"]).expect("good");
    let table = off.after(Some("m"), &levels).expect("good");
    let zero = change(&[(NumberField::Rate, "0")]);
    let table = table.after(None, &zero).expect("the server traces nothing");
    assert!(!table.can_trace());
    let table = table.after(None, &change(&[(NumberField::Rate, "2")])).expect("good");
    assert_eq!(table.setting(Some("m")).settings().levels.names(), ["TIMESTAMPS"]);
}

fn given<T: Clone + std::fmt::Debug>(
    value: impl Strategy<Value = T>,
) -> impl Strategy<Value = Option<NewValue<T>>> {
    prop_oneof![
        Just(None),
        Just(Some(NewValue::Clear)),
        value.prop_map(|v| Some(NewValue::Value(v)))
    ]
}

fn changes() -> impl Strategy<Value = (Option<&'static str>, SettingsChange)> {
    let model = prop_oneof![Just(None), Just(Some("a")), Just(Some("b"))];
    let levels = prop_oneof![Just(Levels::OFF), Just(ON), Just(Levels { tensors: true, ..ON })];
    let fields = (given(levels), given(1u32..4), given(-1i32..4), given(0u32..4));
    (model, fields).prop_map(|(model, (levels, rate, count, log_frequency))| {
        (model, SettingsChange { levels, rate, count, log_frequency })
    })
}

proptest! {
    #[test]
    fn the_nearest_value_counts(steps in proptest::collection::vec(changes(), 0..20)) {
        let mut table = table(on());
        for (model, change) in steps {
            let before = table.clone();
            match table.after(model, &change) {
                Ok(changed) => table = changed,
                Err(_) => prop_assert_eq!(before.seen(model), table.seen(model)),
            }
            let server = table.server.own.settings(&table.start, table.seen(None).count);
            prop_assert_eq!(table.seen(None), server);
            for (name, scope) in &table.models {
                prop_assert_ne!(scope.own, Own::default());
                let seen = table.seen(Some(name));
                prop_assert_eq!(seen, scope.own.settings(&server, seen.count));
                prop_assert!(scope.own.has_count || model != Some(name) || seen.count == server.count);
            }
            if let (Some(NewValue::Value(rate)), true) = (change.rate, table.seen(model) != before.seen(model)) {
                prop_assert_eq!(table.seen(model).rate, rate);
            }
        }
    }
}
