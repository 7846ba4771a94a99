import { HandlerError } from 'configurator-sdk';

/** A text of the parameters. */
export function parameter(input, name) {
  const text = input.parameters[name];
  if (typeof text !== 'string') {
    throw new HandlerError(`there is no parameter ${name}`, { fatal: true });
  }
  return text;
}
