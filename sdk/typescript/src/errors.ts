/**
 * What can go wrong. A command that fails, is killed or runs out of time is a result, not an error:
 * an error means that there is nothing to tell.
 */

import type { ExecResult } from "./results.js";

/** `code` is an errno name in lower case ("enoent") or one of Caisson's ("lost"); `stage` what was being done. */
export class CaissonError extends Error {
  override name = "CaissonError";

  constructor(
    readonly code: string,
    readonly stage: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** There is no such file, tag or sandbox (`enoent`). */
export class NotFound extends CaissonError {
  override name = "NotFound";
}

/** It is there already (`eexist`). */
export class AlreadyExists extends CaissonError {
  override name = "AlreadyExists";
}

/** A folder where a file was asked for (`eisdir`). */
export class IsADirectory extends CaissonError {
  override name = "IsADirectory";
}

/** A file where a folder was asked for (`enotdir`). */
export class NotADirectory extends CaissonError {
  override name = "NotADirectory";
}

/** A folder with something in it (`enotempty`). */
export class NotEmpty extends CaissonError {
  override name = "NotEmpty";
}

/** The sandbox does not permit it (`eacces`, `eperm`, `erofs`). */
export class AccessDenied extends CaissonError {
  override name = "AccessDenied";
}

/** The request is not one; the sentence names what (`invalid`, `einval`). */
export class Invalid extends CaissonError {
  override name = "Invalid";
}

/** No pattern of glob, or no regular expression of grep. */
export class InvalidPattern extends Invalid {
  override name = "InvalidPattern";
}

/** This sandbox does not have that verb, or a part of it (`not_supported`). */
export class NotSupported extends CaissonError {
  override name = "NotSupported";
}

/** The call's time was over (`etimedout`). */
export class Timeout extends CaissonError {
  override name = "Timeout";
}

/** Too much at once; later it may work (`eagain`, `ebusy`). */
export class Busy extends CaissonError {
  override name = "Busy";
}

/** More than a call or a result may be (`efbig`, `e2big`). */
export class TooLarge extends CaissonError {
  override name = "TooLarge";
}

/** What watched one command died; the sandbox goes on (`command_lost`). */
export class CommandLost extends CaissonError {
  override name = "CommandLost";
}

/** The sandbox is gone; every later call says so too (`lost`). */
export class Lost extends CaissonError {
  override name = "Lost";
}

/**
 * The policy, or what this machine has, does not permit such a sandbox; nothing weaker is taken instead (`eperm` of
 * stage `policy`, `TierUnavailable`, `StrictModeUnavailable`, `StrictModeRequired`,
 * `ApprovalRequired`, `ApprovalDenied`).
 */
export class PolicyRefused extends CaissonError {
  override name = "PolicyRefused";
}

/** There is no caisson command to start. */
export class NotInstalled extends CaissonError {
  override name = "NotInstalled";
}

/** The caisson command and this package do not speak the same protocol. */
export class VersionMismatch extends CaissonError {
  override name = "VersionMismatch";
}

/**
 * An AbortSignal ended the call; `cause` is the signal's reason. Its name is what JavaScript's own
 * functions use. `result` is the account of the command, if there is one.
 */
export class Cancelled extends CaissonError {
  override name = "AbortError";
  result?: ExecResult;
}

type ErrorClass = new (code: string, stage: string, message: string, options?: ErrorOptions) => CaissonError;

const classes: ReadonlyMap<string, ErrorClass> = new Map<string, ErrorClass>([
  ["enoent", NotFound],
  ["eexist", AlreadyExists],
  ["eisdir", IsADirectory],
  ["enotdir", NotADirectory],
  ["enotempty", NotEmpty],
  ["eacces", AccessDenied],
  ["eperm", AccessDenied],
  ["erofs", AccessDenied],
  ["invalid", Invalid],
  ["einval", Invalid],
  ["invalid_pattern", InvalidPattern],
  ["invalid_regex", InvalidPattern],
  ["match_limit", InvalidPattern],
  ["not_supported", NotSupported],
  ["etimedout", Timeout],
  ["cancelled", Cancelled],
  ["eagain", Busy],
  ["ebusy", Busy],
  ["efbig", TooLarge],
  ["e2big", TooLarge],
  ["command_lost", CommandLost],
  ["lost", Lost],
  ["TierUnavailable", PolicyRefused],
  ["StrictModeUnavailable", PolicyRefused],
  ["StrictModeRequired", PolicyRefused],
  ["ApprovalRequired", PolicyRefused],
  ["ApprovalDenied", PolicyRefused],
]);

/** The error of the class that belongs to a code. */
export function errorOf(code: string, stage: string, message: string, options?: ErrorOptions): CaissonError {
  return new (classes.get(code) ?? CaissonError)(code, stage, message, options);
}

/** What a call was answered. Only the end of the stream says of a sandbox that it is lost. */
export function failureOf(reason: string, verb: string, text: string): CaissonError {
  const code = reason === "lost" ? "command_lost" : reason === "timeout" ? "etimedout" : reason;
  return errorOf(code, verb, text);
}
