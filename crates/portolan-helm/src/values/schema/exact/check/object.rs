//! Rules of objects.

use portolan_gotmpl::{Map, Text, Value};

use super::super::super::subschema::{Needs, Rest};
use super::super::failure::{Failure, quoted, quoted_list};
use super::super::number::count;
use super::{Checker, Scope, Work};

impl Checker<'_> {
    pub(super) fn check_object(&mut self, work: &mut Work<'_>, map: &Map) {
        let rules = &work.node.object;
        let got = map.len();
        if let Some(min) = rules.min_properties.filter(|min| got < *min) {
            let told = format!("minProperties: got {}, want {}", count(got), count(min));
            self.fail(work, told);
        }
        if let Some(max) = rules.max_properties.filter(|max| got > *max) {
            let told = format!("maxProperties: got {}, want {}", count(got), count(max));
            self.fail(work, told);
        }
        let missing = missing(map, &rules.required);
        match missing.as_slice() {
            [] => {}
            [only] => self.fail(work, format!("missing property {}", quoted(only))),
            several => {
                let told = format!(
                    "missing properties {}",
                    quoted_list(several.iter().copied())
                );
                self.fail(work, told);
            }
        }
        if !work.is_settled() {
            self.check_properties(work, map);
            self.check_names(work, map);
            self.check_needs(work, map);
        }
    }

    fn check_properties(&mut self, work: &mut Work<'_>, map: &Map) {
        let mut additional = Vec::new();
        for (name, value) in map.snapshot() {
            if work.is_settled() {
                return;
            }
            let (described, forbidden) = self.check_property(work, &name, &value);
            if described {
                work.unevaluated.properties.remove(name.as_str());
            }
            if forbidden {
                additional.push(name);
            }
        }
        if !additional.is_empty() {
            let names = quoted_list(additional.iter().map(Text::as_str));
            self.fail(work, format!("additional properties {names} not allowed"));
        }
    }

    /// Whether any rule is about the property, and whether it is that there must be none.
    fn check_property(&mut self, work: &mut Work<'_>, name: &str, value: &Value) -> (bool, bool) {
        let rules = &work.node.object;
        let own = rules.properties.get(name);
        let matching = rules.pattern_properties.iter();
        let matching = matching.filter(|(pattern, _)| pattern.is_match(name));
        let mut described = false;
        for schema in own.into_iter().chain(matching.map(|(_, schema)| schema)) {
            described = true;
            let failure = self.below(work, *schema, value, name).err();
            work.failures.extend(failure);
        }
        match rules.additional {
            Some(rest) if !described => {
                if let Rest::Schema(schema) = rest {
                    let failure = self.below(work, schema, value, name).err();
                    work.failures.extend(failure);
                }
                (true, matches!(rest, Rest::Allowed(false)))
            }
            _ => (described, false),
        }
    }

    /// `propertyNames`: every name is a value of its own.
    fn check_names(&mut self, work: &mut Work<'_>, map: &Map) {
        let Some(schema) = work.node.object.names else {
            return;
        };
        for (name, _) in map.snapshot() {
            let scope = Scope {
                id: schema,
                keyword: None,
                value: 0,
                depth: work.scope.depth + 1,
                above: None,
            };
            let path = std::mem::take(&mut self.path);
            let value = Value::Str(name.clone());
            let mut inner = Work::new(self.schema, schema, &value, &scope, false, work.quiet);
            let applied = self.apply(&mut inner);
            self.path = path;
            if let Err(failure) = applied {
                let told = format!("invalid propertyName {}", quoted(&name));
                // The name itself lies nowhere in the values.
                let heading = Failure {
                    at: String::new(),
                    causes: failure.into_causes(),
                    ..self.failure(work, told)
                };
                work.failures.push(heading);
            }
        }
    }

    fn check_needs(&mut self, work: &mut Work<'_>, map: &Map) {
        for (name, needs) in &work.node.object.needs {
            if map.get(name).is_none() {
                continue;
            }
            match needs {
                Needs::Properties(names) => {
                    let missing = missing(map, names);
                    if !missing.is_empty() {
                        let (missing, name) = (quoted_list(missing), quoted(name));
                        self.fail(
                            work,
                            format!("properties {missing} required, if {name} exists"),
                        );
                    }
                }
                Needs::Schema(schema) => {
                    let failure = self.same(work, *schema, false).err();
                    work.failures.extend(failure);
                }
            }
        }
    }
}

fn missing<'n>(map: &Map, names: &'n [String]) -> Vec<&'n str> {
    let names = names.iter().map(String::as_str);
    names.filter(|name| map.get(name).is_none()).collect()
}
