//! Which parts of their arguments functions read, and which parts their results may contain.

use portolan_yaml::Text;

use super::known::{Known, Thing};
use super::{ReadAnalysis, Site};

impl ReadAnalysis<'_> {
    /// What a call gives; a function that is not known here reads everything it is given.
    pub(super) fn call(&mut self, name: &str, args: &[Known], site: Site) -> Known {
        match (unfailing(name), args) {
            ("include", [template, dot]) => self.include(*template, *dot),
            ("tpl", [text, dot]) => self.execute_text(*text, *dot),
            ("dict", pairs) => self.dict(pairs, site),
            ("list" | "tuple", items) => self.list(items, site),
            ("set", [dict, key, value]) => self.set(*dict, *key, *value),
            ("merge" | "mergeOverwrite", [into, rest @ ..]) => self.merge(*into, rest),
            ("get" | "hasKey", [dict, key]) => {
                let found = self.item(*dict, *key);
                if name == "get" { found } else { Known::NOTHING }
            }
            ("index", [from, keys @ ..]) => {
                let step = |value: Known, key: &Known| self.item(value, *key);
                keys.iter().fold(*from, step)
            }
            ("dig", [keys @ .., default, dict]) => {
                let step = |value: Known, key: &Known| self.item(value, *key);
                let found = keys.iter().fold(*dict, step);
                self.join(found, *default)
            }
            ("deepCopy", [value]) => *value,
            ("omit" | "unset" | "pick", [dict, keys @ ..]) => {
                self.read_all(keys);
                *dict
            }
            ("default" | "coalesce" | "required" | "ternary", args) => self.one_of(args),
            ("not" | "empty" | "kindIs" | "kindOf" | "typeIs" | "typeOf" | "typeIsLike", args) => {
                for value in args {
                    self.test(*value);
                }
                Known::NOTHING
            }
            ("first" | "last", [list]) => self.elements(*list),
            ("append" | "push" | "prepend", [list, item]) => {
                let items = self.elements(*list);
                let items = self.join(items, *item);
                self.list_of(items, site)
            }
            ("concat" | "values", lists) => {
                let mut items = Known::NOTHING;
                for list in lists {
                    let more = self.elements(*list);
                    items = self.join(items, more);
                }
                self.list_of(items, site)
            }
            ("rest" | "initial" | "reverse" | "uniq" | "compact", [list]) => {
                let items = self.elements(*list);
                self.list_of(items, site)
            }
            (_, args) => {
                self.read_all(args);
                Known::NOTHING
            }
        }
    }

    fn read_all(&mut self, values: &[Known]) {
        for value in values {
            self.read(*value);
        }
    }

    /// A template's output is text: what is in it was printed.
    fn include(&mut self, template: Known, dot: Known) -> Known {
        self.read(template);
        let name = self.known.text(template).cloned();
        self.follow_named(name.as_deref(), dot);
        Known::NOTHING
    }

    /// Which text that is, nobody knows: those that it may be are looked at in the contexts that it may see.
    fn execute_text(&mut self, text: Known, dot: Known) -> Known {
        self.read(text);
        if let Some(text) = self.known.text(text).cloned() {
            self.text_in(&text, dot);
            return Known::NOTHING;
        }
        let (charts, others) = self.split_charts(dot);
        self.read(others);
        self.text_charts.extend(charts);
        Known::NOTHING
    }

    fn dict(&mut self, pairs: &[Known], site: Site) -> Known {
        let made = self.made(site);
        for pair in pairs.chunks(2) {
            if let [key, value] = pair {
                self.read(*key);
                let key = self.known.text(*key).cloned();
                self.add_field(made, key.as_ref(), *value);
            }
        }
        self.known.of([Thing::Object(made)])
    }

    fn list(&mut self, items: &[Known], site: Site) -> Known {
        let made = self.made(site);
        for (index, item) in items.iter().enumerate() {
            self.add_field(made, Some(&Text::from(index.to_string())), *item);
        }
        self.known.of([Thing::Object(made)])
    }

    fn list_of(&mut self, items: Known, site: Site) -> Known {
        let made = self.made(site);
        self.add_field(made, None, items);
        self.known.of([Thing::Object(made)])
    }

    fn set(&mut self, dict: Known, key: Known, value: Known) -> Known {
        self.read(key);
        let key = self.known.text(key).cloned();
        for thing in self.things_of(dict) {
            match thing {
                Thing::Object(id) => self.add_field(id, key.as_ref(), value),
                // It is found there again under another name.
                Thing::Chart(_) | Thing::Path(_) => self.read(value),
            }
        }
        dict
    }

    fn merge(&mut self, into: Known, rest: &[Known]) -> Known {
        let mut result = into;
        for from in rest {
            for thing in self.things_of(into) {
                match thing {
                    Thing::Object(id) => self.add_merged(id, *from),
                    // It is found there again under another name.
                    Thing::Chart(_) | Thing::Path(_) => self.read(*from),
                }
            }
            result = self.join(result, *from);
        }
        result
    }

    /// What is under a key; under any when it is not known which.
    fn item(&mut self, of: Known, key: Known) -> Known {
        self.read(key);
        match self.known.text(key).cloned() {
            Some(key) => self.field(of, &key),
            None => self.elements(of),
        }
    }

    /// One of its arguments, whichever is not empty.
    fn one_of(&mut self, args: &[Known]) -> Known {
        let mut result = Known::NOTHING;
        for value in args {
            self.test(*value);
            result = self.join(result, *value);
        }
        result
    }
}

/// The name of a function without the `must` of its sibling that fails: `mustMerge` does what `merge` does.
fn unfailing(name: &str) -> &str {
    const SIBLINGS: &[(&str, &str)] = &[
        ("mustAppend", "append"),
        ("mustCompact", "compact"),
        ("mustDeepCopy", "deepCopy"),
        ("mustFirst", "first"),
        ("mustInitial", "initial"),
        ("mustLast", "last"),
        ("mustMerge", "merge"),
        ("mustMergeOverwrite", "mergeOverwrite"),
        ("mustPrepend", "prepend"),
        ("mustPush", "push"),
        ("mustRest", "rest"),
        ("mustReverse", "reverse"),
        ("mustUniq", "uniq"),
    ];
    let mut siblings = SIBLINGS.iter();
    let known = siblings.find(|(failing, _)| *failing == name);
    known.map_or(name, |(_, unfailing)| unfailing)
}
