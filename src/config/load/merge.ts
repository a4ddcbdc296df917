// Protobuf's merge of messages: scalars replace, messages merge, lists append, map entries replace.

import type { Message } from '../schema/decode.js';
import type { MessageType, Schema } from '../schema/schema.js';

/** Merges `from` into `into`, which is changed in place. Both are messages of that type in canonical form. */
export function mergeMessage(schema: Schema, type: MessageType, into: Message, from: Message): void {
  for (const [name, value] of Object.entries(from)) {
    const field = type.fields.get(name);
    const current = into[name];
    if (field?.oneof !== undefined) clearOthers(type, field.oneof, name, into);
    if (current === undefined || !field) into[name] = value;
    else if (field.shape === 'list') into[name] = [...(current as unknown[]), ...(value as unknown[])];
    else if (field.shape === 'map') into[name] = { ...(current as Message), ...(value as Message) };
    else if (field.value.kind === 'message') {
      mergeMessage(schema, schema.message(field.value.name)!, current as Message, value as Message);
    } else if (field.value.kind === 'special' && field.value.special === 'struct') {
      into[name] = { ...(current as Message), ...(value as Message) };
    } else into[name] = value;
  }
}

/** Clears the other members of a oneof when one is set. */
function clearOthers(type: MessageType, oneof: string, name: string, into: Message): void {
  for (const member of type.oneofs.find((candidate) => candidate.name === oneof)!.fields) {
    if (member !== name) delete into[member];
  }
}
