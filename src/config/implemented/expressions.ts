// Implemented fields of expressions in the form of messages. Those that only describe the text are without effect.

import { accepted, byValue, type ImplementedTable, obeyed, refused } from './table.js';

const DESCRIBES = accepted('it describes the text of the expression, which is evaluated without it');
const NO_OPTIONALS = refused('optional values are not available in expressions, as in Envoy');

/** Messages inside such fields. */
const DESCRIPTIONS: { readonly [message: string]: readonly string[] } = {
  Reference: ['name', 'overload_id', 'value'],
  Type: [
    'dyn',
    'null',
    'primitive',
    'wrapper',
    'well_known',
    'list_type',
    'map_type',
    'function',
    'message_type',
    'type_param',
    'type',
    'error',
    'abstract_type',
  ],
  'Type.ListType': ['elem_type'],
  'Type.MapType': ['key_type', 'value_type'],
  'Type.FunctionType': ['result_type', 'arg_types'],
  'Type.AbstractType': ['name', 'parameter_types'],
  SourceInfo: ['syntax_version', 'location', 'line_offsets', 'positions', 'macro_calls', 'extensions'],
  'SourceInfo.Extension': ['id', 'affected_components', 'version'],
  'SourceInfo.Extension.Version': ['major', 'minor'],
};

function descriptions(name: string): ImplementedTable {
  return Object.fromEntries(
    Object.entries(DESCRIPTIONS).map(([message, fields]) => [
      `${name}.${message}`,
      Object.fromEntries(fields.map((field) => [field, DESCRIBES])),
    ]),
  );
}

function expressions(name: string): ImplementedTable {
  return {
    [`${name}.ParsedExpr`]: { expr: true, source_info: DESCRIBES },
    [`${name}.CheckedExpr`]: {
      expr: true,
      source_info: DESCRIBES,
      reference_map: DESCRIBES,
      type_map: DESCRIBES,
      expr_version: DESCRIBES,
    },
    [`${name}.Expr`]: {
      ...obeyed('const_expr', 'ident_expr', 'select_expr', 'call_expr', 'list_expr', 'struct_expr'),
      id: DESCRIBES,
      comprehension_expr: refused('comprehensions are not available in expressions, as in Envoy'),
    },
    [`${name}.Constant`]: {
      null_value: byValue({ NULL_VALUE: true }),
      ...obeyed(
        'bool_value',
        'int64_value',
        'uint64_value',
        'double_value',
        'string_value',
        'bytes_value',
        'duration_value',
        'timestamp_value',
      ),
    },
    [`${name}.Expr.Ident`]: obeyed('name'),
    [`${name}.Expr.Select`]: obeyed('operand', 'field', 'test_only'),
    [`${name}.Expr.Call`]: obeyed('target', 'function', 'args'),
    [`${name}.Expr.CreateList`]: { elements: true, optional_indices: NO_OPTIONALS },
    [`${name}.Expr.CreateStruct`]: {
      message_name: refused('expressions make maps, but no messages: leave it out'),
      entries: true,
    },
    [`${name}.Expr.CreateStruct.Entry`]: {
      id: DESCRIBES,
      map_key: true,
      value: true,
      field_key: refused('expressions make maps, but no messages: set map_key'),
      optional_entry: NO_OPTIONALS,
    },
  };
}

export const EXPRESSIONS: ImplementedTable = {
  ...expressions('google.api.expr.v1alpha1'),
  ...expressions('cel.expr'),
  ...descriptions('google.api.expr.v1alpha1'),
  ...descriptions('cel.expr'),
  'xds.type.matcher.v3.CelMatcher': {
    expr_match: true,
    description: accepted('it describes the expression for people'),
  },
  'xds.type.v3.CelExpression': {
    ...obeyed('parsed_expr', 'checked_expr', 'cel_expr_parsed', 'cel_expr_checked'),
    cel_expr_string: refused('as in Envoy, matchers take a parsed expression only: set cel_expr_parsed'),
  },
};
