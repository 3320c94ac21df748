//! The parts of a request with placeholders, rendered for a row of the data.

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};

use super::placeholder::template_source;
use super::{RequestError, RequestSpec};
use crate::request::data::Data;

const BODY: &str = "body";
const PATH: &str = "url";

/// Path, header values and body of a request with placeholders.
pub(super) struct Template {
    environment: Environment<'static>,
    /// Number of header fields.
    fields: usize,
}

/// The parts of a request for a row of the data.
pub(super) struct RenderedParts {
    pub(super) path: String,
    /// Values of the header fields, in their order.
    pub(super) values: Vec<String>,
    pub(super) body: String,
}

impl Template {
    /// Compiles the parts. An unknown placeholder, or one that the first row cannot fill, is an error.
    pub(super) fn compile(
        spec: &RequestSpec,
        path: &str,
        data: &Data,
    ) -> Result<Self, RequestError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let mut syntax = SyntaxConfig::builder();
        syntax.keep_trailing_newline(true);
        if let Ok(syntax) = syntax.build() {
            environment.set_syntax(syntax);
        }
        let xml = spec.body.trim_start_matches('\u{feff}').trim_start();
        let xml = xml.starts_with('<');
        environment.set_auto_escape_callback(move |name| match name {
            BODY if xml => AutoEscape::Html,
            _ => AutoEscape::None,
        });
        let placeholders = data.placeholders();
        let mut add = |name: String, part: &'static str, text: &str| {
            let template = |reason| RequestError::Template {
                request: spec.name.clone(),
                part,
                reason,
            };
            environment
                .add_template_owned(name.clone(), template_source(text))
                .map_err(template)?;
            let compiled = environment.get_template(&name).map_err(template)?;
            let unknown = compiled
                .undeclared_variables(false)
                .into_iter()
                .find(|name| !placeholders.contains(name));
            match unknown {
                None => Ok(()),
                Some(column) => Err(RequestError::UnknownColumn {
                    request: spec.name.clone(),
                    part,
                    column,
                    columns: placeholders.to_vec(),
                }),
            }
        };
        add(PATH.to_owned(), PATH, path)?;
        add(BODY.to_owned(), BODY, &spec.body)?;
        for (number, (_, value)) in spec.headers.iter().enumerate() {
            add(header_name(number), "header", value)?;
        }
        let template = Self {
            environment,
            fields: spec.headers.len(),
        };
        // An unknown filter, or one that does not fit the data, shows when it is used.
        let rendered = template.render(&data.row(0));
        rendered.map_err(|reason| RequestError::Rendered {
            request: spec.name.clone(),
            row: 1,
            reason,
        })?;
        Ok(template)
    }

    /// Fills the placeholders of the body only.
    pub(super) fn render_body(&self, row: &Value) -> Result<String, String> {
        let template = self.environment.get_template(BODY);
        let body = template.and_then(|template| template.render(row.clone()));
        body.map_err(|error| error.to_string())
    }

    /// Fills the placeholders. Line breaks in header values become blanks.
    pub(super) fn render(&self, row: &Value) -> Result<RenderedParts, String> {
        let part = |name: &str| {
            self.environment
                .get_template(name)
                .and_then(|template| template.render(row.clone()))
                .map_err(|error| error.to_string())
        };
        let value = |number| Ok(part(&header_name(number))?.replace(['\r', '\n', '\0'], " "));
        Ok(RenderedParts {
            path: part(PATH)?.chars().flat_map(escape_in_path).collect(),
            values: (0..self.fields).map(value).collect::<Result<_, String>>()?,
            body: part(BODY)?,
        })
    }
}

fn header_name(number: usize) -> String {
    format!("header-{number}")
}

/// Percent-encodes characters that would end the request line or are not ASCII. Leaves `/?&=%` unchanged.
fn escape_in_path(c: char) -> Vec<char> {
    if c.is_ascii_graphic() && !matches!(c, '"' | '<' | '>' | '#') {
        return vec![c];
    }
    let mut bytes = [0; 4];
    let encoded = c.encode_utf8(&mut bytes);
    encoded
        .bytes()
        .flat_map(|byte| format!("%{byte:02X}").chars().collect::<Vec<_>>())
        .collect()
}
