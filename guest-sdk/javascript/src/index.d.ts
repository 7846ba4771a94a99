/**
 * Write configurator handlers in JavaScript and TypeScript.
 *
 * A handler is a plain function. It reads an `Input`, decides, and returns an `Output`: requests that the host carries out, and arguments
 * for the next phase. It talks to no server, reads no clock and keeps nothing.
 */
export * as configstore from './configstore.js';
export { type Cause, Context, Signal } from './context.js';
export {
  type ConfigAppConfKey,
  type ConfigContent,
  type ConfigKey,
  type ConfigResourceKey,
  type ConfigTwoLayersKey,
  type Content,
  type DesiredEntry,
  desiredEntry,
  type DesiredEntryOptions,
  type DesiredSet,
  desiredSet,
  type DesiredSetOptions,
  type OnConflict,
  type OnDelete,
  type OnExisting,
  type OnImmutable,
  type SecretContent,
  type TerminationPolicy,
} from './desired.js';
export { Json } from './document.js';
export { HandlerError, type HandlerErrorOptions } from './error.js';
export * as extension from './extension.js';
export { type HandlerDeclaration, Handlers, handlers, type Run } from './handlers.js';
export * as http from './http.js';
export { Input, type InputFacts, type Plan, WatchedObject, type WatchEvent } from './input.js';
export * as kubernetes from './kubernetes.js';
export type { ObjectKey, ObjectRef } from './kubernetes.js';
export { type Fields, type Level, log } from './log.js';
export { type BatchErrorStrategy, type EventType, Output } from './output.js';
export {
  type OnError,
  type Operation,
  type Readiness,
  request,
  type Request,
  type RequestOptions,
  type Requests,
  type WireReadiness,
} from './request.js';
export { type ErrorKind, HttpResponse, type RequestError, type RequestSink, Result } from './result.js';
export { Results } from './results.js';
export * as secretstore from './secretstore.js';
export { State } from './state.js';
