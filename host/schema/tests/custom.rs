//! Schemas of custom kinds: their rules, validation, defaults, pruning and CEL.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use configurator_schema::{FieldError, Schema};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

fn shown(errors: &[FieldError]) -> String {
    errors.iter().map(|e| format!("{e}\n")).collect()
}

/// A schema whose `spec` is given.
fn of_spec(spec: Value) -> Result<Schema, Vec<FieldError>> {
    Schema::from_crd(&json!({"type": "object", "properties": {"spec": spec}}))
}

fn refused(spec: Value, want: &Expect) {
    want.assert_eq(&shown(&of_spec(spec).unwrap_err()));
}

fn check(spec: Value, object: Value, want: &Expect) {
    want.assert_eq(&shown(
        &of_spec(spec)
            .unwrap()
            .validate(&json!({"spec": object}), None),
    ));
}

#[test]
fn schemas_must_be_structural() {
    refused(
        json!({}),
        &expect![[r#"
        properties[spec].type: Required value: must not be empty for specified object fields
    "#]],
    );
    refused(
        json!({"type": "array"}),
        &expect![[r#"
        properties[spec].items: Required value: must be specified
    "#]],
    );
    refused(
        json!({"type": "wrong"}),
        &expect![[r#"
        properties[spec].type: Unsupported value: "wrong": supported values: "array", "boolean", "integer", "number", "object", "string"
    "#]],
    );
    refused(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
        &expect![[r#"
        properties[spec].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive
    "#]],
    );
    refused(
        json!({"type": "object", "anyOf": [{"type": "object", "properties": {"x": {"minimum": 1}}}]}),
        &expect![[r#"
        properties[spec].anyOf[0].type: Forbidden: must be empty to be structural
        properties[spec].properties[x]: Required value: because it is defined in properties[spec].anyOf[0].properties[x]
    "#]],
    );
    refused(
        json!({"type": "string", "pattern": "("}),
        &expect![[r#"
        properties[spec].pattern: Invalid value: "(": must be a valid regular expression, but isn't: regex parse error:
            (
            ^
        error: unclosed group
    "#]],
    );
    refused(
        json!({"type": "array", "items": {"type": "object", "properties": {"n": {"type": "string"}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n", "m"]}),
        &expect![[r#"
        properties[spec].items.properties[n].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property
        properties[spec].x-kubernetes-list-map-keys: Invalid value: ["n","m"]: entries must all be names of item properties
    "#]],
    );
    refused(
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false, "$ref": "#/x"}),
        &expect![[r#"
        properties[spec].$ref: Forbidden: $ref is not supported
        properties[spec].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined
    "#]],
    );
    refused(
        json!({"type": "object", "properties": {"a": {"type": "integer", "default": "x"}, "b": {"type": "object", "properties": {}, "default": {"c": 1}}}}),
        &expect![[r#"
            properties[spec].properties[a].default: Invalid value: "string":  in body must be of type integer: "string"
            properties[spec].properties[b].default: Invalid value: {"c":1}: must not have unknown fields
        "#]],
    );
    let root =
        Schema::from_crd(&json!({"type": "string", "additionalProperties": {"type": "string"}}))
            .unwrap_err();
    expect![[r#"
        additionalProperties: Forbidden: must not be used at the root
        type: Invalid value: "string": must be object at the root
    "#]]
    .assert_eq(&shown(&root));
    let meta = Schema::from_crd(&json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}})).unwrap_err();
    expect![[r#"
        properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified
    "#]].assert_eq(&shown(&meta));
    let mut deep = json!({"type": "string"});
    for _ in 0..110 {
        deep = json!({"type": "object", "properties": {"x": deep}});
    }
    assert!(Schema::from_crd(&deep).is_err());
}

#[test]
fn values_are_validated() {
    let string = |extra: Value| {
        let mut schema = json!({"type": "string"});
        schema
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        json!({"type": "object", "required": ["s"], "properties": {"s": schema}})
    };
    check(
        string(json!({})),
        json!({}),
        &expect![[r#"
        spec.s: Required value
    "#]],
    );
    check(
        string(json!({})),
        json!({"s": 1}),
        &expect![[r#"
        spec.s: Invalid value: "integer": spec.s in body must be of type string: "integer"
    "#]],
    );
    check(
        string(json!({})),
        json!({"s": null}),
        &expect![[r#"
        spec.s: Invalid value: "null": spec.s in body must be of type string: "null"
    "#]],
    );
    check(
        string(json!({"nullable": true})),
        json!({"s": null}),
        &expect![[""]],
    );
    check(
        string(json!({"enum": ["a", "b"]})),
        json!({"s": "c"}),
        &expect![[r#"
        spec.s: Unsupported value: "c": supported values: "a", "b"
    "#]],
    );
    check(
        string(json!({"pattern": "^[a-z]+$", "maxLength": 3, "minLength": 2})),
        json!({"s": "1"}),
        &expect![[r#"
        spec.s: Invalid value: "1": spec.s in body should be at least 2 chars long
        spec.s: Invalid value: "1": spec.s in body should match '^[a-z]+$'
    "#]],
    );
    check(
        string(json!({"maxLength": 3})),
        json!({"s": "abcd"}),
        &expect![[r#"
        spec.s: Too long: may not be more than 3 bytes
    "#]],
    );
    check(
        string(json!({"format": "date-time"})),
        json!({"s": "yesterday"}),
        &expect![[r#"
        spec.s: Invalid value: "yesterday": spec.s in body must be of type date-time: "yesterday"
    "#]],
    );
    let number = |extra: Value| {
        let mut schema = json!({"type": "integer"});
        schema
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        json!({"type": "object", "properties": {"n": schema}})
    };
    check(
        number(json!({"minimum": 1})),
        json!({"n": 0}),
        &expect![[r#"
        spec.n: Invalid value: 0: spec.n in body should be greater than or equal to 1
    "#]],
    );
    check(
        number(json!({"maximum": 9, "exclusiveMaximum": true})),
        json!({"n": 9}),
        &expect![[r#"
        spec.n: Invalid value: 9: spec.n in body should be less than 9
    "#]],
    );
    check(
        number(json!({"multipleOf": 2})),
        json!({"n": 3}),
        &expect![[r#"
        spec.n: Invalid value: 3: spec.n in body should be a multiple of 2
    "#]],
    );
    check(
        number(json!({})),
        json!({"n": 1.5}),
        &expect![[r#"
        spec.n: Invalid value: "number": spec.n in body must be of type integer: "number"
    "#]],
    );
    check(
        number(json!({})),
        json!({"n": 9007199254740993_i64}),
        &expect![[""]],
    );
    let list = json!({"type": "object", "properties": {"l": {"type": "array", "maxItems": 2, "x-kubernetes-list-type": "set", "items": {"type": "string"}}}});
    check(
        list.clone(),
        json!({"l": ["a", "a"]}),
        &expect![[r#"
        spec.l[1]: Duplicate value: "a"
    "#]],
    );
    check(
        list,
        json!({"l": ["a", "b", "c"]}),
        &expect![[r#"
        spec.l: Too many: 3: must have at most 2 items
    "#]],
    );
    let map = json!({"type": "object", "properties": {"l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
        "items": {"type": "object", "required": ["n"], "properties": {"n": {"type": "string"}}}}}});
    check(
        map,
        json!({"l": [{"n": "a"}, {"n": "a"}, {}]}),
        &expect![[r#"
        spec.l[2].n: Required value
        spec.l[1]: Duplicate value: {"n":"a"}
    "#]],
    );
    let choice = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
    check(
        choice.clone(),
        json!({}),
        &expect![[r#"
            <nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found none valid
        "#]],
    );
    check(
        choice.clone(),
        json!({"a": "", "b": ""}),
        &expect![[r#"
            <nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives
        "#]],
    );
    check(choice, json!({"a": ""}), &expect![[""]]);
    check(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "not": {"required": ["a"]}}),
        json!({"a": ""}),
        &expect![[r#"
            <nil>: Invalid value: "": "spec" must not validate the schema (not)
        "#]],
    );
    check(
        json!({"type": "object", "properties": {"p": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}}}),
        json!({"p": true}),
        &expect![[r#"
        spec.p: Invalid value: "boolean": spec.p in body must be of type integer,string: "boolean"
    "#]],
    );
    check(
        json!({"type": "object", "additionalProperties": {"type": "integer"}}),
        json!({"x": "y"}),
        &expect![[r#"
        spec.x: Invalid value: "string": spec.x in body must be of type integer: "string"
    "#]],
    );
}

#[test]
fn unchanged_values_are_not_validated_again() {
    let loose = json!({"spec": {"a": "x", "b": "y"}});
    let strict = of_spec(json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 5}, "b": {"type": "string"}}})).unwrap();
    assert_eq!(strict.validate(&loose, None).len(), 1);
    let changed = json!({"spec": {"a": "x", "b": "z"}});
    assert_eq!(strict.validate(&changed, Some(&loose)), []);
    let worse = json!({"spec": {"a": "w", "b": "z"}});
    assert_eq!(strict.validate(&worse, Some(&loose)).len(), 1);
}

#[test]
fn defaults_and_pruning() {
    let schema = of_spec(json!({"type": "object", "properties": {
        "n": {"type": "integer", "default": 3},
        "o": {"type": "object", "default": {}, "properties": {"x": {"type": "string", "default": "d"}}},
        "p": {"type": "object", "properties": {"x": {"type": "string", "default": "d"}}},
        "nullable": {"type": "string", "nullable": true, "default": "d"},
        "l": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string", "default": "d"}}}},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"known": {"type": "object"}}},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}}
    }}))
    .unwrap();
    let mut object = json!({"apiVersion": "g/v1", "kind": "K", "extra": 1, "metadata": {"name": "x", "bogus": 1}, "spec": {
        "n": null, "nullable": null, "l": [{"k": "a", "w": 1}, {"v": "e"}], "unknown": {"x": 1},
        "open": {"any": {"thing": 1}, "known": {"gone": 1}}, "embedded": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "n", "bogus": 1}, "spec": {"gone": 1}}
    }});
    let unknown = schema.prune(&mut object);
    assert_eq!(
        unknown,
        [
            "extra",
            "metadata.bogus",
            "spec.embedded.metadata.bogus",
            "spec.embedded.spec.gone",
            "spec.l[0].w",
            "spec.open.known.gone",
            "spec.unknown"
        ]
    );
    assert_eq!(schema.prune(&mut object), [] as [&str; 0]);
    schema.default(&mut object);
    assert_eq!(
        object["spec"],
        json!({
            "n": 3, "nullable": null, "o": {"x": "d"}, "l": [{"k": "a", "v": "d"}, {"v": "e"}],
            "open": {"any": {"thing": 1}, "known": {}}, "embedded": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "n"}, "spec": {}}
        })
    );
    let once = object.clone();
    schema.default(&mut object);
    assert_eq!(object, once);
}

/// Evaluates one rule on `spec`.
fn rule(properties: Value, rule: Value, object: Value, old: Option<Value>, want: &Expect) {
    let rule = if rule.is_string() {
        json!({"rule": rule})
    } else {
        rule
    };
    let text = match of_spec(
        json!({"type": "object", "properties": properties, "x-kubernetes-validations": [rule]}),
    ) {
        Ok(schema) => {
            let old = old.map(|o| json!({"spec": o}));
            shown(&schema.validate(&json!({"spec": object}), old.as_ref()))
        }
        Err(errors) => shown(&errors),
    };
    want.assert_eq(&text);
}

#[test]
fn rules() {
    let range = || {
        json!({"min": {"type": "integer"}, "max": {"type": "integer"}, "a-b": {"type": "string"}, "list": {"type": "array", "items": {"type": "string"}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}}, "at": {"type": "string", "format": "date-time"}, "namespace": {"type": "string"}})
    };
    let spec = || json!({"min": 2, "max": 1, "a-b": "x", "list": ["a", "b"], "labels": {"k": "v"}, "at": "2026-01-01T00:00:00Z", "namespace": "n"});
    let run = |source: Value, want: &Expect| rule(range(), source, spec(), None, want);
    run(
        json!("self.min <= self.max"),
        &expect![[r#"
            spec: Invalid value: failed rule: self.min <= self.max
        "#]],
    );
    run(
        json!({"rule": "self.min <= self.max", "message": "min above max", "fieldPath": ".min", "reason": "FieldValueForbidden"}),
        &expect![[r#"
        spec.min: Forbidden: min above max
    "#]],
    );
    run(
        json!({"rule": "self.min <= self.max", "messageExpression": "'min is ' + string(self.min)"}),
        &expect![[r#"
            spec: Invalid value: min is 2
        "#]],
    );
    for good in [
        "self.__namespace__ == 'n' && self.a__dash__b == 'x'",
        "self.list.all(x, x.size() == 1) && self.list.exists(x, x == 'b') && self.list.map(x, x + '!')[0] == 'a!'",
        "self.list.filter(x, x > 'a').size() == 1 && self.list.exists_one(x, x == 'a')",
        "has(self.labels) && 'k' in self.labels && self.labels['k'] == 'v' && self.labels.all(k, k == 'k')",
        "self.at < timestamp('2027-01-01T00:00:00Z') && self.at.getFullYear() == 2026",
        "self.list.isSorted() && self.list.indexOf('b') == 1 && self.list.lastIndexOf('z') == -1 && [1, 2].sum() == 3 && [3, 1].min() == 1 && [3, 1].max() == 3",
        "'a,b'.split(',').join('-') == 'a-b' && ' A '.trim().lowerAscii() == 'a' && 'abc'.substring(1) == 'bc' && 'aXa'.replace('X', 'b') == 'aba'",
        "'abc'.matches('^a.c$') && 'abc'.startsWith('a') && 'abc'.contains('b') && 'a1b2'.findAll('[0-9]') == ['1', '2'] && 'a1'.find('[0-9]') == '1'",
        "quantity('1Gi') == quantity('1024Mi') && quantity('1').isLessThan(quantity('1500m')) && quantity('1k').asInteger() == 1000 && isQuantity('1x') == false && quantity('1').add(quantity('2')).compareTo(quantity('3')) == 0",
        "url('https://a.example:80/x').getHostname() == 'a.example' && isURL('x') == false && ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.2.3')",
        "duration('1h') > duration('59m') && int('3') == 3 && (self.min > 1 ? true : false) && type(self.min) == int",
    ] {
        run(json!(good), &expect![[""]]);
    }
}

#[test]
fn rules_that_are_refused_or_fail() {
    let one = || json!({"a": {"type": "string"}, "l": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}});
    let run = |source: Value, want: &Expect| {
        rule(
            one(),
            source,
            json!({"a": "x", "l": [{"n": 1}]}),
            None,
            want,
        )
    };
    run(
        json!("self.a =="),
        &expect![[r#"
        properties[spec].x-kubernetes-validations[0].rule: Invalid value: "self.a ==": compilation failed: ERROR: <input>:1:10: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}
        | self.a ==
        | .........^
    "#]],
    );
    run(
        json!("self.b == 1"),
        &expect![[r#"
        properties[spec].x-kubernetes-validations[0].rule: Invalid value: "self.b == 1": compilation failed: undefined field 'b'
    "#]],
    );
    run(
        json!("self.l.all(x, x.m > 1)"),
        &expect![[r#"
        properties[spec].x-kubernetes-validations[0].rule: Invalid value: "self.l.all(x, x.m > 1)": compilation failed: undefined field 'm'
    "#]],
    );
    run(
        json!("other.a == 1"),
        &expect![[r#"
        properties[spec].x-kubernetes-validations[0].rule: Invalid value: "other.a == 1": compilation failed: undeclared reference to 'other' (in container '')
    "#]],
    );
    run(
        json!("launch(self.a)"),
        &expect![[r#"
        properties[spec].x-kubernetes-validations[0].rule: Invalid value: "launch(self.a)": compilation failed: undeclared reference to 'launch' (in container '')
    "#]],
    );
    run(
        json!(""),
        &expect![[r#"
        properties[spec].x-kubernetes-validations[0].rule: Required value: rule is not specified
    "#]],
    );
    run(
        json!({"rule": "true", "reason": "Whim", "message": "a\nb", "fieldPath": ".nowhere"}),
        &expect![[r#"
        properties[spec].x-kubernetes-validations[0].fieldPath: Invalid value: ".nowhere": must be a valid path
        properties[spec].x-kubernetes-validations[0].message: Invalid value: "a\nb": must not contain line breaks
        properties[spec].x-kubernetes-validations[0].reason: Unsupported value: "Whim": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"
    "#]],
    );
    run(
        json!({"rule": "true", "optionalOldSelf": true}),
        &expect![[r#"
        properties[spec].x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule
    "#]],
    );
    run(
        json!("self.a"),
        &expect![[r#"
        spec: Invalid value: "object": rule evaluates to string, must be bool, evaluating rule: self.a
    "#]],
    );
    run(
        json!("int(self.a) == 1"),
        &expect![[r#"
        spec: Invalid value: "object": Error executing function 'int': string parse error: invalid digit found in string evaluating rule: int(self.a) == 1
    "#]],
    );
    run(
        json!("self.l[7].n == 1"),
        &expect![[r#"
        spec: Invalid value: "object": Index out of bounds: Int(7) evaluating rule: self.l[7].n == 1
    "#]],
    );
}

#[test]
fn transition_rules() {
    let one = || json!({"a": {"type": "string"}});
    let run = |source: Value, old: Option<Value>, want: &Expect| {
        rule(one(), source, json!({"a": "new"}), old, want)
    };
    run(json!("self.a == oldSelf.a"), None, &expect![[""]]);
    run(
        json!({"rule": "self.a == oldSelf.a", "message": "a is immutable"}),
        Some(json!({"a": "old"})),
        &expect![[r#"
            spec: Invalid value: a is immutable
        "#]],
    );
    run(
        json!({"rule": "oldSelf.hasValue() || self.a == 'other'", "optionalOldSelf": true, "message": "must start as other"}),
        None,
        &expect![[r#"
            spec: Invalid value: must start as other
        "#]],
    );
    run(
        json!({"rule": "oldSelf.hasValue()", "optionalOldSelf": true}),
        Some(json!({"a": "old"})),
        &expect![[""]],
    );
    let items = json!({"type": "object", "properties": {"n": {"type": "string"}}, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]});
    refused(
        json!({"type": "array", "items": items}),
        &expect![[r#"
        properties[spec].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within properties[spec]
    "#]],
    );
}

#[test]
fn hostile_rules_cannot_hang() {
    let list = |n: usize| json!({"l": (0..n).collect::<Vec<_>>()});
    let properties = || json!({"l": {"type": "array", "items": {"type": "integer"}}});
    let nested = "self.l.all(a, self.l.all(b, self.l.all(c, self.l.all(d, a + b + c + d >= 0))))";
    rule(properties(), json!(nested), list(5), None, &expect![[""]]);
    rule(
        properties(),
        json!(nested),
        list(500),
        None,
        &expect![[r#"
        spec: Invalid value: "object": validation failed due to running out of cost budget, no further validation rules will be run
    "#]],
    );
    let text = json!({"s": {"type": "string"}});
    let growing = "self.s.replace('', self.s).replace('', self.s).replace('', self.s).size() > 0";
    rule(
        text,
        json!(growing),
        json!({"s": "x".repeat(5000)}),
        None,
        &expect![[r#"
        spec: Invalid value: "object": validation failed due to running out of cost budget, no further validation rules will be run
    "#]],
    );
    let long = vec!["1"; 2000].join("+");
    assert!(
        of_spec(
            json!({"type": "object", "x-kubernetes-validations": [{"rule": format!("{long} > 0")}]})
        )
        .is_err()
    );
    let deep = format!("{}true{}", "(".repeat(1500), ")".repeat(1500));
    assert!(
        of_spec(json!({"type": "object", "x-kubernetes-validations": [{"rule": deep}]})).is_err()
    );
    let chain = vec!["!"; 3000].concat() + "true";
    let _ = of_spec(json!({"type": "object", "x-kubernetes-validations": [{"rule": chain}]}));
}
