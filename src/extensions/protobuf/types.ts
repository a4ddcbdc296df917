// Types of protobuf messages, as a descriptor set describes them.

/** FieldDescriptorProto.Type. */
export const enum FieldType {
  Double = 1,
  Float = 2,
  Int64 = 3,
  Uint64 = 4,
  Int32 = 5,
  Fixed64 = 6,
  Fixed32 = 7,
  Bool = 8,
  String = 9,
  Group = 10,
  Message = 11,
  Bytes = 12,
  Uint32 = 13,
  Enum = 14,
  Sfixed32 = 15,
  Sfixed64 = 16,
  Sint32 = 17,
  Sint64 = 18,
}

/** Names of the types of fields that are neither messages nor enums, as error messages show them. */
export const TYPE_NAMES: { readonly [type: number]: string } = {
  [FieldType.Double]: 'TYPE_DOUBLE',
  [FieldType.Float]: 'TYPE_FLOAT',
  [FieldType.Int64]: 'TYPE_INT64',
  [FieldType.Uint64]: 'TYPE_UINT64',
  [FieldType.Int32]: 'TYPE_INT32',
  [FieldType.Fixed64]: 'TYPE_FIXED64',
  [FieldType.Fixed32]: 'TYPE_FIXED32',
  [FieldType.Bool]: 'TYPE_BOOL',
  [FieldType.String]: 'TYPE_STRING',
  [FieldType.Bytes]: 'TYPE_BYTES',
  [FieldType.Uint32]: 'TYPE_UINT32',
  [FieldType.Sfixed32]: 'TYPE_SFIXED32',
  [FieldType.Sfixed64]: 'TYPE_SFIXED64',
  [FieldType.Sint32]: 'TYPE_SINT32',
  [FieldType.Sint64]: 'TYPE_SINT64',
};

/** Messages whose JSON form is not that of their fields. */
export const enum WellKnown {
  None = 0,
  Any = 1,
  Timestamp = 2,
  Duration = 3,
  FieldMask = 4,
  Struct = 5,
  Value = 6,
  ListValue = 7,
  /** A wrapper of a scalar, such as google.protobuf.Int32Value. */
  Wrapper = 8,
}

export interface FieldDescriptor {
  readonly name: string;
  readonly jsonName: string;
  readonly number: number;
  readonly type: FieldType;
  readonly isRepeated: boolean;
  readonly isRequired: boolean;
  /** An unset value differs from a default one. */
  readonly hasPresence: boolean;
  /** Text must be UTF-8. */
  readonly checksUtf8: boolean;
  /** The index of the oneof that contains the field; -1: none does. */
  readonly oneof: number;
  /** The descriptor of a field that is a message or a group. */
  readonly message: MessageDescriptor | undefined;
  readonly enum: EnumDescriptor | undefined;
}

export interface MessageDescriptor {
  readonly name: string;
  /** In the order of the file. */
  readonly fields: readonly FieldDescriptor[];
  readonly byNumber: ReadonlyMap<number, FieldDescriptor>;
  /** By name and by JSON name. */
  readonly byName: ReadonlyMap<string, FieldDescriptor>;
  readonly oneofs: readonly string[];
  /** It is an entry of a map. */
  readonly isMapEntry: boolean;
  readonly wellKnown: WellKnown;
}

export interface EnumDescriptor {
  readonly name: string;
  readonly byName: ReadonlyMap<string, number>;
  /** The first name of each number. */
  readonly byNumber: ReadonlyMap<number, string>;
}

export interface MethodDescriptor {
  readonly name: string;
  readonly input: MessageDescriptor;
  readonly output: MessageDescriptor;
  readonly clientStreaming: boolean;
  readonly serverStreaming: boolean;
  /** The google.api.http option, encoded. */
  readonly httpRule: Buffer | undefined;
}

export interface ServiceDescriptor {
  readonly name: string;
  readonly methods: readonly MethodDescriptor[];
}

/** Everything that a descriptor set describes, by full name. */
export interface TypeRegistry {
  readonly messages: ReadonlyMap<string, MessageDescriptor>;
  readonly services: ReadonlyMap<string, ServiceDescriptor>;
}
