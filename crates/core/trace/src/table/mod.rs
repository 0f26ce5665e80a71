//! The settings of the server and of the models, and the rules by which they follow each other.

use std::{collections::HashMap, sync::Arc};

use crate::{
    change::{InvalidSettings, NewValue, SettingsChange},
    level::Levels,
    setting::Setting,
    settings::Settings,
};

/// The values that a change has set. The others follow the server, or the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Own {
    levels: Option<Levels>,
    rate: Option<u32>,
    /// The value is what the sampler has left.
    has_count: bool,
    log_frequency: Option<u32>,
}

impl Own {
    fn changed(&self, change: &SettingsChange) -> Self {
        Self {
            levels: NewValue::apply(change.levels, self.levels),
            rate: NewValue::apply(change.rate, self.rate),
            has_count: NewValue::apply(change.count, self.has_count.then_some(0)).is_some(),
            log_frequency: NewValue::apply(change.log_frequency, self.log_frequency),
        }
    }

    /// Returns the settings, whose missing values are those of `fallback`. `left` is the count that an own one has left.
    fn settings(&self, fallback: &Settings, left: i32) -> Settings {
        Settings {
            levels: self.levels.unwrap_or(fallback.levels),
            rate: self.rate.unwrap_or(fallback.rate),
            count: if self.has_count { left } else { fallback.count },
            log_frequency: self.log_frequency.unwrap_or(fallback.log_frequency),
        }
    }
}

#[derive(Clone, Debug)]
struct Scope {
    own: Own,
    setting: Arc<Setting>,
}

/// The settings in force. A change makes another table, and the counters of every setting that it touches start again.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    start: Settings,
    server: Scope,
    models: HashMap<Arc<str>, Scope>,
}

/// Makes a setting in force.
pub(crate) type MakeSetting<'a> = &'a mut dyn FnMut(Settings) -> Arc<Setting>;

impl Table {
    pub fn new(start: Settings, make: MakeSetting<'_>) -> Self {
        let server = Scope { own: Own::default(), setting: make(start) };
        Self { start, server, models: HashMap::new() }
    }

    /// Returns the setting of a model, or that of the server.
    pub fn setting(&self, model: Option<&str>) -> &Arc<Setting> {
        let own = model.and_then(|model| self.models.get(model));
        &own.unwrap_or(&self.server).setting
    }

    /// Returns whether a model has settings of its own.
    pub fn has_own(&self, model: &str) -> bool {
        self.models.contains_key(model)
    }

    /// Returns whether any request may be traced.
    pub fn can_trace(&self) -> bool {
        self.server.setting.can_trace()
            || self.models.values().any(|model| model.setting.can_trace())
    }

    /// Returns whether any request that belongs to a client's trace may be traced.
    pub fn follows_clients(&self) -> bool {
        self.server.setting.follows_clients()
            || self.models.values().any(|model| model.setting.follows_clients())
    }

    /// Returns whether any setting asks for tensors.
    pub fn has_tensors(&self) -> bool {
        let all = self.models.values().chain([&self.server]);
        all.into_iter().any(|scope| scope.setting.settings().levels.tensors)
    }

    /// Returns the table after a change of the server, or of a model.
    ///
    /// # Errors
    /// The settings would not fit each other. Nothing is changed then.
    pub fn changed(
        &self,
        model: Option<&str>,
        change: &SettingsChange,
        has_destination: bool,
        make: MakeSetting<'_>,
    ) -> Result<Self, InvalidSettings> {
        match model {
            Some(model) => self.model_changed(model, change, has_destination, make),
            None => self.server_changed(change, has_destination, make),
        }
    }

    fn model_changed(
        &self,
        model: &str,
        change: &SettingsChange,
        has_destination: bool,
        make: MakeSetting<'_>,
    ) -> Result<Self, InvalidSettings> {
        let mut table = self.clone();
        let current = self.models.get(model);
        let own = current.map(|scope| scope.own).unwrap_or_default().changed(change);
        if own == Own::default() {
            table.models.remove(model);
            return Ok(table);
        }
        let left = left(current.map(|scope| &*scope.setting), change);
        let settings = own.settings(&self.server.setting.settings(), left);
        settings.check(change, has_destination)?;
        table.models.insert(model.into(), Scope { own, setting: make(settings) });
        Ok(table)
    }

    fn server_changed(
        &self,
        change: &SettingsChange,
        has_destination: bool,
        make: MakeSetting<'_>,
    ) -> Result<Self, InvalidSettings> {
        let own = self.server.own.changed(change);
        let settings = own.settings(&self.start, left(Some(&self.server.setting), change));
        settings.check(change, has_destination)?;
        let none = SettingsChange::default();
        // A model whose own settings do not fit those of the server traces nothing: it must not keep the server from a change.
        let follow = |scope: &Scope| {
            let followed = scope.own.settings(&settings, scope.setting.settings().count);
            let fits = followed.check(&none, has_destination).is_ok();
            if fits { followed } else { Settings { levels: Levels::OFF, ..followed } }
        };
        let server = Scope { own, setting: make(settings) };
        let models = self.models.iter().map(|(name, scope)| {
            (name.clone(), Scope { own: scope.own, setting: make(follow(scope)) })
        });
        Ok(Self { start: self.start, server, models: models.collect() })
    }
}

/// Returns the count that an own one has after a change.
fn left(current: Option<&Setting>, change: &SettingsChange) -> i32 {
    let left = current.map(|setting| setting.settings().count);
    NewValue::apply(change.count, left).unwrap_or(-1)
}

#[cfg(test)]
mod tests;
