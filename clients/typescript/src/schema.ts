// Generated from crates/api-gateway/openapi.yaml by scripts/generate.mjs. Do not edit.

export interface paths {
    "/v1/caller": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Tell what the key may do
         * @description Of the key that the request came with.
         */
        get: operations["getCaller"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List Namespaces
         * @description Those of your account; with a key that is narrowed to some, these. Fields to filter and order by: `name`,
         *     `createTime`, `updateTime`, `nickname`.
         */
        get: operations["listNamespaces"];
        put?: never;
        /**
         * Create a Namespace
         * @description Needs a key of role `OWNER` that is not narrowed to some Namespaces.
         */
        post: operations["createNamespace"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
            };
            cookie?: never;
        };
        /**
         * Get a Namespace
         * @description By the last segment of its `name`. What is in it is listed apart.
         */
        get: operations["getNamespace"];
        put?: never;
        post?: never;
        /**
         * Delete a Namespace
         * @description With `force=true` also all that it holds: it is gone from every answer at once. Without, one that holds Managers or
         *     Connections is refused (`not_empty` on `force`).
         *
         *     Needs a key of role `OWNER`.
         */
        delete: operations["deleteNamespace"];
        options?: never;
        head?: never;
        /**
         * Update a Namespace
         * @description Only what the body has changes: a JSON merge patch (RFC 7396). With `updateMask` only what that names does.
         *
         *     Needs a key of role `OWNER` or `EDITOR`.
         */
        patch: operations["updateNamespace"];
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/managers": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
            };
            cookie?: never;
        };
        /**
         * List Managers
         * @description Fields to filter and order by: `name`, `createTime`, `updateTime`, `nickname`, `type`, `enable`, `mode`, `state`,
         *     `applyTime`, `applyError.code`, `applyError.message`, `source.type`, `input.type`, `input.focus.type`,
         *     `input.sensitivity`, `maxScansPerDay`.
         */
        get: operations["listManagers"];
        put?: never;
        /**
         * Create a Manager
         * @description Give either `input`, from which the service compiles the instructions in the background, or `instructions` of your
         *     own. The Manager is returned in state `PENDING_APPLY` and starts to watch once it is `APPLIED`.
         *
         *     Needs a key of role `OWNER` or `EDITOR`.
         */
        post: operations["createManager"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/managers:preview": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Try posts on a draft
         * @description Decides on posts as `previewManager` does, by a Manager that does not exist. Use it to see what a new Manager, or
         *     changed `mutes` and `languages`, would find. Nothing is stored. Mutes of the Namespace apply. Without feeds in
         *     `instructions`, the newest posts of the platforms of its source are read.
         */
        post: operations["previewManagerDraft"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/managers/{managerId}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`. */
                managerId: components["parameters"]["ManagerId"];
            };
            cookie?: never;
        };
        /**
         * Get a Manager
         * @description With its state and, once it is applied, the instructions at work.
         */
        get: operations["getManager"];
        put?: never;
        post?: never;
        /**
         * Delete a Manager
         * @description It matches nothing more, and its Scans are gone from every answer, at once. What of them was not delivered yet is
         *     cancelled.
         *
         *     Needs a key of role `OWNER` or `EDITOR`.
         */
        delete: operations["deleteManager"];
        options?: never;
        head?: never;
        /**
         * Update a Manager
         * @description Only what the body has changes: a JSON merge patch (RFC 7396). With `updateMask` only what that names does.
         *
         *     Naming `input`, `instructions` or `source` makes the Manager `PENDING_APPLY`; what is at work stays so until the new
         *     instructions are. A Manager has either `input` or `instructions`: naming one leaves the other, and with it the `mode`. Of a
         *     body with both, the one that differs from the Manager counts; that both do is a `conflict`. `enable` and `notices` take
         *     effect at once.
         *
         *     Needs a key of role `OWNER` or `EDITOR`.
         */
        patch: operations["updateManager"];
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/managers/{managerId}:apply": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`. */
                managerId: components["parameters"]["ManagerId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Compile a Manager again
         * @description Its pages may have changed, or feedback come in. It is `PENDING_APPLY` until then, and what is at work stays so.
         *
         *     Needs a key of role `OWNER` or `EDITOR`.
         */
        post: operations["applyManager"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/managers/{managerId}:preview": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`. */
                managerId: components["parameters"]["ManagerId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Try posts
         * @description What the Manager would make of posts, by the instructions at work or a draft of others, and by what it and its
         *     Namespace mute: `posts` of yours, the `recent` ones of its feeds, or some that were read, by their `urls`; exactly
         *     one of the three. Of each feed the newest 1,000 posts or 72 hours are kept for it, whichever is less, save for
         *     streams of a whole network. Nothing is stored, and a disabled Manager can be asked too. `maxScansPerDay` and
         *     `duplicates` are not held against them: they depend on what else the day brings.
         *     Words alone decide: neither the reader nor the LLM filter is asked, so a Scan can have another score.
         */
        post: operations["previewManager"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/managers/{managerId}:backfill": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`. */
                managerId: components["parameters"]["ManagerId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Look through the past
         * @description Has the feeds that the Manager watches now looked through from `startTime` on, by the instructions at work. Scans come
         *     as they are found, once per post as ever, and are delivered only with `notify`. Platforms that show nothing of their
         *     past give what is kept of it. Asked again, it looks again.
         *
         *     Needs a key of role `OWNER` or `EDITOR`.
         */
        post: operations["backfillManager"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/managers/{managerId}/feeds": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`. */
                managerId: components["parameters"]["ManagerId"];
            };
            cookie?: never;
        };
        /**
         * See how a Manager's feeds do
         * @description The feeds that it watches now, all of them, by name: whether they are read, when they last were and will be, and what
         *     they bring. So silence can be told from blindness. None where the Manager is disabled or was never applied.
         */
        get: operations["getManagerFeeds"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/managers/{managerId}/scans": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`, or `-` for all Managers of the Namespace. */
                managerId: components["parameters"]["ManagerIdOrAny"];
            };
            cookie?: never;
        };
        /**
         * List Scans
         * @description With `-` for the Manager, those of all Managers of the Namespace. That polling loses nothing is promised for one
         *     Manager at a time.
         *
         *     Fields to filter and order by: `name`, `createTime`, `updateTime`, `value`, `labels` (filter only), `post.type`, `post.time`, `post.id`,
         *     `post.title`, `post.text`, `post.url`, `post.subforum.id`, `post.subforum.name`, `post.user.id`, `post.user.name`,
         *     `match.score`.
         */
        get: operations["listScans"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/managers/{managerId}/scans/{scanId}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`. */
                managerId: components["parameters"]["ManagerId"];
                /** @description The last segment of the Scan's `name`. */
                scanId: components["parameters"]["ScanId"];
            };
            cookie?: never;
        };
        /**
         * Get a Scan
         * @description With the post, and why it matched.
         */
        get: operations["getScan"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Give feedback on a Scan
         * @description Only what the body has changes: a JSON merge patch (RFC 7396). With `updateMask` only what that names does.
         *
         *     `value` is your verdict on the post, and feeds the next compile of its Manager. `labels` are yours to use.
         *
         *     Needs a key of role `OWNER` or `EDITOR`.
         */
        patch: operations["updateScan"];
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/connections": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
            };
            cookie?: never;
        };
        /**
         * List Connections
         * @description Fields to filter and order by: `name`, `createTime`, `updateTime`, `nickname`, `type`, `method`, `format`,
         *     `maxPerSecond`, `state`, `stateReason`.
         */
        get: operations["listConnections"];
        put?: never;
        /**
         * Create a Connection
         * @description Nothing is sent to the address yet. Put the `name` of the Connection into the `notices` of a Manager to have its
         *     Scans delivered.
         *
         *     Needs a key of role `OWNER` or `EDITOR`.
         */
        post: operations["createConnection"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/connections/{connectionId}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`. */
                connectionId: components["parameters"]["ConnectionId"];
            };
            cookie?: never;
        };
        /**
         * Get a Connection
         * @description With its state. A key of role `VIEWER` sees `***` for the values of `headers`.
         */
        get: operations["getConnection"];
        put?: never;
        post?: never;
        /**
         * Delete a Connection
         * @description One that the `notices` of a Manager name is refused (`in_use` on `force`); with `force=true` it is taken out of them. What
         *     was not delivered yet is cancelled.
         *
         *     Needs a key of role `OWNER` or `EDITOR`.
         */
        delete: operations["deleteConnection"];
        options?: never;
        head?: never;
        /**
         * Update a Connection
         * @description Only what the body has changes: a JSON merge patch (RFC 7396). With `updateMask` only what that names does.
         *
         *     `state` pauses (`DISABLED`) and resumes (`ACTIVE`): what comes meanwhile waits. Headers are merged by name, in any case; one
         *     that is `null` is taken out. `signingSecrets` are replaced whole.
         *
         *     Needs a key of role `OWNER` or `EDITOR`.
         */
        patch: operations["updateConnection"];
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/connections/{connectionId}:enable": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`. */
                connectionId: components["parameters"]["ConnectionId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Enable a Connection
         * @description What waits for it is delivered from now on, whoever or whatever disabled it.
         *
         *     Needs a key of role `OWNER` or `EDITOR`.
         */
        post: operations["enableConnection"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/stats": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
            };
            cookie?: never;
        };
        /**
         * What happened in a Namespace
         * @description Posts read from the feeds that its Managers watch now, Scans of all Managers and deliveries to all Connections, those
         *     that were deleted since included. Counts follow what happens within some seconds.
         */
        get: operations["getNamespaceStats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/managers/{managerId}/stats": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`. */
                managerId: components["parameters"]["ManagerId"];
            };
            cookie?: never;
        };
        /**
         * What happened to a Manager
         * @description Posts read from the feeds that it watches now, and its Scans. Points have no `deliveries`. Counts follow what happens
         *     within some seconds.
         */
        get: operations["getManagerStats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/connections/{connectionId}/stats": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`. */
                connectionId: components["parameters"]["ConnectionId"];
            };
            cookie?: never;
        };
        /**
         * What happened to a Connection
         * @description Deliveries to it. Points have `deliveries` and `deliveryDelayMs` alone. Counts follow what happens within some
         *     seconds.
         */
        get: operations["getConnectionStats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/connections/{connectionId}:test": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`. */
                connectionId: components["parameters"]["ConnectionId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a sample event now
         * @description One event of a made-up Scan, with the Connection's method, headers, format and signatures. It goes to a disabled
         *     Connection too, counts for no statistics and is in no log. The answer comes within 12 seconds, and says what came of
         *     the request; with `x-test`, the Connection is only checked and `sent` is false. An account may wait for four tests at a
         *     time; the next one is answered 429.
         *
         *     Needs a key of role `OWNER` or `EDITOR`.
         */
        post: operations["testConnection"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/connections/{connectionId}:replay": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`. */
                connectionId: components["parameters"]["ConnectionId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send past deliveries again
         * @description Every delivery that was created from `startTime` to `endTime` (now, without it), in any state or in those named, is
         *     reopened once and sent again: the same delivery, attempts appended, the schedule of retries from its start. It is done
         *     in the background, more slowly than what is new; the Replay tells how far it is. At most 10 may run for a Connection
         *     (`too_many` on `replays`).
         *
         *     Needs a key of role `OWNER` or `EDITOR`.
         */
        post: operations["replayDeliveries"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/auditEvents": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`, or `-` for the whole account. */
                namespaceId: components["parameters"]["NamespaceIdOrAny"];
            };
            cookie?: never;
        };
        /**
         * List audit events
         * @description The audit log: who changed what, when, and from where. Only keys of role `OWNER` can read it. With `-` for the Namespace,
         *     the events of the whole account: those of all Namespaces, deleted ones included, and of its API keys and quotas. A key
         *     that is limited to Namespaces cannot list the whole account. Fields to filter and order by: `name`, `createTime`,
         *     `action`, `resource`, `fields` (only to filter), `actor.type`, `actor.key`, `clientAddress`, `requestId`. A request with
         *     `x-test: true` is recorded only if it reads secrets.
         */
        get: operations["listAuditEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/connections/{connectionId}/replays": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`. */
                connectionId: components["parameters"]["ConnectionId"];
            };
            cookie?: never;
        };
        /**
         * List Replays
         * @description Fields to filter and order by: `name`, `createTime`, `updateTime`, `startTime`, `endTime`, `state`, `total`, `done`.
         */
        get: operations["listReplays"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/connections/{connectionId}/replays/{replayId}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`. */
                connectionId: components["parameters"]["ConnectionId"];
                /** @description The last segment of the Replay's `name`. */
                replayId: components["parameters"]["ReplayId"];
            };
            cookie?: never;
        };
        /**
         * Get a Replay
         * @description How far it is.
         */
        get: operations["getReplay"];
        put?: never;
        post?: never;
        /**
         * Cancel a Replay
         * @description Nothing more is reopened; what was reopened is sent. One that has ended stays as it is. It stays in the list.
         *
         *     Needs a key of role `OWNER` or `EDITOR`.
         */
        delete: operations["cancelReplay"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/connections/{connectionId}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`, or `-` for all Connections of the Namespace. */
                connectionId: components["parameters"]["ConnectionIdOrAny"];
            };
            cookie?: never;
        };
        /**
         * List deliveries
         * @description The delivery log: one delivery for each Scan or service event and Connection. Fields to filter and order by: `name`, `createTime`,
         *     `updateTime`, `scan`, `state`, `attemptCount`, `lastAttemptTime`, `nextAttemptTime`, `lastStatusCode`, `lastError`.
         *     Pages in the order of `createTime`, of all deliveries or those of one `scan` or of a `state` of `EXHAUSTED` or
         *     `CANCELLED`, cost the same however long the log is.
         */
        get: operations["listDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/connections/{connectionId}/deliveries/{deliveryId}": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`. */
                connectionId: components["parameters"]["ConnectionId"];
                /** @description The last segment of the delivery's `name`. */
                deliveryId: components["parameters"]["DeliveryId"];
            };
            cookie?: never;
        };
        /**
         * Get a delivery
         * @description With its attempts, the earliest first; the newest 100 of them.
         */
        get: operations["getDelivery"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/namespaces/{namespaceId}/connections/{connectionId}/deliveries/{deliveryId}:retry": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`. */
                connectionId: components["parameters"]["ConnectionId"];
                /** @description The last segment of the delivery's `name`. */
                deliveryId: components["parameters"]["DeliveryId"];
            };
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a delivery again
         * @description At once, in whatever state it is, and even though the Connection has failed so often that it is given a rest. The
         *     schedule of retries starts anew. A delivery whose request is open just now is sent again after that. To a disabled
         *     Connection it waits until that is enabled. A delivery whose Scan is no longer kept is refused (`not_found` on `scan`).
         *
         *     Needs a key of role `OWNER` or `EDITOR`.
         */
        post: operations["retryDelivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/feeds/{namespaceId}/{managerId}.atom": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`. */
                managerId: components["parameters"]["ManagerId"];
            };
            cookie?: never;
        };
        /**
         * A Manager's Scans as an Atom feed
         * @description The newest 50, for feed readers. The key may also be given as the password of Basic authentication, with any
         *     user name: make one of role `VIEWER`, narrowed to the Namespace, for that. Text is plain and holds no markup.
         */
        get: operations["getScansAsAtom"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/feeds/{namespaceId}/{managerId}.json": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`. */
                managerId: components["parameters"]["ManagerId"];
            };
            cookie?: never;
        };
        /**
         * A Manager's Scans as a JSON Feed
         * @description The newest 50, for feed readers. The key may also be given as the password of Basic authentication, with any
         *     user name: make one of role `VIEWER`, narrowed to the Namespace, for that. Text is plain and holds no markup.
         */
        get: operations["getScansAsJsonFeed"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/docs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * This document as a page
         * @description Rendered for reading and trying out. The page loads nothing from other servers.
         */
        get: operations["getDocs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * This document as JSON
         * @description What generators and other tools read.
         */
        get: operations["getOpenapiJson"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.yaml": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * This document as YAML
         * @description As it was written, for people.
         */
        get: operations["getOpenapiYaml"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * @description A lower-case ULID.
         * @example 01jd3y8k6q9v2w4x5z7a8b9c0d
         */
        Id: string;
        /**
         * Format: date-time
         * @description RFC 3339, UTC, six fractional digits.
         * @example 2026-11-21T01:02:03.000123Z
         */
        Timestamp: string;
        /** @example namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d */
        NamespaceName: string;
        /** @example namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/managers/01jd3y9m1r2s3t4v5w6x7y8z9a */
        ManagerName: string;
        /** @example namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/connections/01jd3yax4c5d6e7f8g9h0j1k2m */
        ConnectionName: string;
        /** @example namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/managers/01jd3y9m1r2s3t4v5w6x7y8z9a/scans/01jd3ybz8n9p0q1r2s3t4v5w6x */
        ScanName: string;
        /**
         * @description What people call it. Space at the ends is cut off.
         * @example Acme
         */
        Nickname: string;
        /**
         * @example {
         *       "name": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d",
         *       "createTime": "2026-11-21T01:02:03.000123Z",
         *       "updateTime": "2026-11-21T01:02:03.000123Z",
         *       "nickname": "Acme"
         *     }
         */
        Namespace: {
            name: components["schemas"]["NamespaceName"];
            createTime: components["schemas"]["Timestamp"];
            updateTime: components["schemas"]["Timestamp"];
            nickname: components["schemas"]["Nickname"];
            mutes?: components["schemas"]["Mutes"];
        };
        /** @description A Namespace to be. Its output-only fields are ignored where they are given. */
        CreateNamespace: {
            nickname: components["schemas"]["Nickname"];
            mutes?: components["schemas"]["Mutes"] | null;
        };
        /**
         * @example {
         *       "account": "acme",
         *       "role": "EDITOR",
         *       "namespaces": [
         *         "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d"
         *       ],
         *       "rateLimitPerMinute": 600,
         *       "accountRateLimitPerMinute": 6000,
         *       "quotas": {
         *         "namespaces": {
         *           "limit": 100,
         *           "used": 2
         *         },
         *         "managers": {
         *           "limit": 1000,
         *           "used": 12
         *         },
         *         "connections": {
         *           "limit": 1000,
         *           "used": 3
         *         },
         *         "feeds": {
         *           "limit": 2000,
         *           "used": 40
         *         },
         *         "contentBytes": {
         *           "limit": 20000000,
         *           "used": 91733
         *         },
         *         "scansPerDay": {
         *           "limit": 100000,
         *           "used": 812
         *         }
         *       }
         *     }
         */
        Caller: {
            account: string;
            /**
             * @description `OWNER`: everything. `EDITOR`: everything but creating and deleting Namespaces. `VIEWER`: reading.
             * @enum {string}
             */
            role: "OWNER" | "EDITOR" | "VIEWER";
            /** @description Those that the key is narrowed to; absent when it is not. */
            namespaces?: components["schemas"]["NamespaceName"][];
            expireTime?: components["schemas"]["Timestamp"];
            /** @description Who signed in to the console, if the key is a session. */
            person?: string;
            /** @description Points that the key may spend in a minute. */
            rateLimitPerMinute: number;
            /** @description Points that all keys of the account together may spend in a minute. */
            accountRateLimitPerMinute: number;
            /**
             * @description What the whole account may have and has, in all its Namespaces. What would exceed a quota is 400
             *     `quota_exceeded`. `used` is above `limit` after a quota was lowered: what exists stays and works.
             */
            quotas: {
                namespaces: components["schemas"]["Quota"];
                managers: components["schemas"]["Quota"];
                connections: components["schemas"]["Quota"];
                /** @description Distinct feeds that the enabled Managers watch. */
                feeds: components["schemas"]["Quota"];
                /**
                 * @description Bytes of the instructions and mutes of Managers and the mutes of Namespaces, as JSON. What would exceed it is
                 *     reported on `instructions` or `mutes`.
                 */
                contentBytes: components["schemas"]["Quota"];
                /**
                 * @description Scans of today (UTC), those of backfills too. When they are used up, posts that match wait: their Managers
                 *     have the health reason `quota_exceeded`, and get the Scans on the next day, or when the quota is raised.
                 */
                scansPerDay: components["schemas"]["Quota"];
            };
        };
        Quota: {
            limit: number;
            used: number;
        };
        /** @description What changes of a Namespace. Output-only fields are ignored where they are given. */
        UpdateNamespace: {
            nickname?: components["schemas"]["Nickname"];
            mutes?: components["schemas"]["Mutes"] | null;
        };
        /**
         * @description Posts not to hear of, whatever the instructions say. Yours: no compile touches them. A Namespace's are for all its
         *     Managers, beside their own. They hold for posts that are found from now on.
         */
        Mutes: components["schemas"]["Mute"][];
        Mute: {
            /**
             * @description `AUTHOR`, `SUBFORUM`: by id, name or address, in any case. `SITE`: by the host of the post's address, and those
             *     below it. `TERM`: a word or phrase of title or text, as `exclude` of the instructions has it.
             * @enum {string}
             */
            type: "AUTHOR" | "SUBFORUM" | "SITE" | "TERM";
            /** @description Of a `TERM` at most 100 characters, with a letter or digit among them; of a `SITE` a host. */
            value: string;
            /** @description From then on it has no effect; absent or null, it stands until it is taken out. */
            expireTime?: components["schemas"]["Timestamp"] | null;
        };
        /**
         * @description Posts in other languages are left out; without any, all are welcome. Tags of BCP 47, of which the language alone
         *     counts (`pt-BR` is kept as `pt`), and only languages that are told apart (else `invalid_enum`). A post that is too
         *     short to tell passes.
         */
        Languages: string[];
        /**
         * @description A guard against floods. Once half of a day's (UTC) Scans are made, and more than the part of the day that is over
         *     allows, the working threshold rises with each further one, so that the best still come; at the bound nothing does. What
         *     was held back is counted as `suppressed` in the statistics, and shows in `health`.
         */
        MaxScansPerDay: number;
        /**
         * @example {
         *       "namespaces": [
         *         {
         *           "name": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d",
         *           "createTime": "2026-11-21T01:02:03.000123Z",
         *           "updateTime": "2026-11-21T01:02:03.000123Z",
         *           "nickname": "Acme"
         *         }
         *       ],
         *       "nextPageToken": "eyJ2IjoxfQ"
         *     }
         */
        NamespaceList: {
            namespaces: components["schemas"]["Namespace"][];
            nextPageToken?: components["schemas"]["NextPageToken"];
        };
        /** @description The `pageToken` of the next page; absent on the last one. */
        NextPageToken: string;
        /** @enum {string} */
        ManagerType: "FEED_MANAGER";
        /**
         * @example {
         *       "name": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/managers/01jd3y9m1r2s3t4v5w6x7y8z9a",
         *       "createTime": "2026-11-21T01:02:03.000123Z",
         *       "updateTime": "2026-11-21T01:02:04.500000Z",
         *       "nickname": "People looking for backups",
         *       "type": "FEED_MANAGER",
         *       "enable": true,
         *       "mode": "AUTOMATIC",
         *       "state": "APPLIED",
         *       "applyTime": "2026-11-21T01:02:04.500000Z",
         *       "source": {
         *         "type": "FORUM"
         *       },
         *       "input": {
         *         "type": "STRUCTURED",
         *         "urls": [
         *           "https://example.com/backup"
         *         ],
         *         "focus": {
         *           "type": "SALES"
         *         },
         *         "sensitivity": "BALANCED"
         *       },
         *       "instructions": {
         *         "feeds": [
         *           "hackernews:newest"
         *         ],
         *         "include": [
         *           {
         *             "text": "backup",
         *             "weight": 2.5
         *           },
         *           {
         *             "text": "offsite",
         *             "weight": 1
         *           }
         *         ],
         *         "focus": "SALES",
         *         "threshold": 0.5,
         *         "brief": "Somebody looks for backup software."
         *       },
         *       "notices": [
         *         {
         *           "type": "HTTP_REQUEST",
         *           "connection": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/connections/01jd3yax4c5d6e7f8g9h0j1k2m"
         *         }
         *       ],
         *       "mutes": [
         *         {
         *           "type": "TERM",
         *           "value": "hiring"
         *         }
         *       ],
         *       "health": {
         *         "state": "OK",
         *         "reasons": []
         *       }
         *     }
         */
        Manager: {
            name: components["schemas"]["ManagerName"];
            createTime: components["schemas"]["Timestamp"];
            updateTime: components["schemas"]["Timestamp"];
            nickname: components["schemas"]["Nickname"];
            type: components["schemas"]["ManagerType"];
            /** @description A disabled Manager is compiled but matches nothing. */
            enable: boolean;
            /**
             * @description `AUTOMATIC` when its instructions are compiled from `input`, `MANUAL` when they were given.
             * @enum {string}
             */
            mode: "AUTOMATIC" | "MANUAL";
            /**
             * @description How far the present `input` or `instructions` have come. Older instructions, if any, stay at work until new ones
             *     are applied.
             * @enum {string}
             */
            state: "PENDING_APPLY" | "APPLIED" | "APPLY_FAILED";
            applyTime?: components["schemas"]["Timestamp"];
            applyError?: components["schemas"]["ApplyError"];
            source: components["schemas"]["Source"];
            input?: components["schemas"]["Input"];
            instructions?: components["schemas"]["Instructions"];
            notices: components["schemas"]["Notice"][];
            mutes?: components["schemas"]["Mutes"];
            languages?: components["schemas"]["Languages"];
            maxScansPerDay?: components["schemas"]["MaxScansPerDay"];
            kinds?: components["schemas"]["Kinds"];
            duplicates?: components["schemas"]["Duplicates"];
            health: components["schemas"]["ManagerHealth"];
        };
        /**
         * @description What kinds of posts it hears; absent in answers where it is `POST` alone, which is the rule. With `COMMENT` its feeds
         *     gain those of the comments that belong to them, where the platform has such: another value has it compiled again.
         */
        Kinds: ("POST" | "COMMENT")[];
        /**
         * @description With `COLLAPSE`, a post with the same link as an earlier one's, or near-same text, becomes another of the `places` of
         *     the earlier one's Scan for seven days from that, and no Scan of its own. Absent in answers where it is `KEEP`.
         * @enum {string}
         */
        Duplicates: "KEEP" | "COLLAPSE";
        CreateBackfill: {
            /** @description No more than 30 days back, which is the rule. */
            startTime?: components["schemas"]["Timestamp"] | null;
            /**
             * @description Whether what is found is delivered to the Manager's Connections.
             * @default false
             */
            notify?: boolean | null;
        };
        /**
         * @example {
         *       "feeds": [
         *         {
         *           "feed": "hackernews:newest",
         *           "reachTime": "2026-10-22T01:02:03.000123Z"
         *         }
         *       ]
         *     }
         */
        Backfill: {
            feeds: {
                feed: string;
                /**
                 * @description From when on its posts will be had. Where a platform bounds their number alone, an estimate by how many it
                 *     brings.
                 */
                reachTime: components["schemas"]["Timestamp"];
            }[];
        };
        /**
         * @example {
         *       "feeds": [
         *         {
         *           "feed": "hackernews:newest",
         *           "url": "https://news.ycombinator.com/newest",
         *           "state": "OK",
         *           "lastPollTime": "2026-11-21T01:02:03.000123Z",
         *           "nextPollTime": "2026-11-21T01:02:33.000123Z",
         *           "lastPostTime": "2026-11-21T01:01:40.000000Z",
         *           "postsPerDay": 912.5,
         *           "scansPerDay": 3.14,
         *           "gaps": 0,
         *           "quarantinedPosts": 1,
         *           "lastQuarantine": {
         *             "time": "2026-11-20T13:14:15.000123Z",
         *             "reason": "cannot be read: missing field `published`"
         *           },
         *           "days": [
         *             {
         *               "day": "2026-11-21",
         *               "read": 37,
         *               "late": 1,
         *               "gone": 0,
         *               "quarantined": 0,
         *               "gapCount": 1,
         *               "gaps": [
         *                 {
         *                   "from": "2026-11-21T00:10:00.000000Z",
         *                   "to": "2026-11-21T00:10:00.000000Z",
         *                   "reason": "more posts in the search than can be read",
         *                   "state": "OPEN"
         *                 }
         *               ],
         *               "ids": {
         *                 "upTo": 46001200,
         *                 "read": 36,
         *                 "other": 402,
         *                 "gone": 11,
         *                 "notVisible": 0,
         *                 "unexplained": 1,
         *                 "unexplainedIds": [
         *                   46000815
         *                 ]
         *               }
         *             }
         *           ]
         *         }
         *       ]
         *     }
         */
        FeedList: {
            feeds: components["schemas"]["Feed"][];
        };
        Feed: {
            feed: string;
            /** @description Where people see what it has. */
            url?: string;
            /**
             * @description `LATE`: its look is overdue. `FAILING`: the last look failed, for a reason that may pass. `BLOCKED`: the platform
             *     refuses it until somebody changes something. `BUDGET_SPENT`: the platform's limit, or the operator's, is reached.
             * @enum {string}
             */
            state: "OK" | "LATE" | "FAILING" | "BLOCKED" | "BUDGET_SPENT";
            /** @description Whether that look succeeded or not; absent before the first. */
            lastPollTime?: components["schemas"]["Timestamp"];
            nextPollTime: components["schemas"]["Timestamp"];
            /** @description Of the newest post that was read. */
            lastPostTime?: components["schemas"]["Timestamp"];
            /** @description How many posts it brings, whoever watches it: an estimate. */
            postsPerDay?: number;
            /** @description How many Scans this Manager gets of them, by those of seven days. */
            scansPerDay: number;
            /** @description How often posts may have been missing, for the platform gave no more. */
            gaps: number;
            /**
             * @description How many posts of the feed were skipped so far, because they could not be read or stored, are empty, or were dated
             *     far back when they appeared. The feed continues without them.
             */
            quarantinedPosts: number;
            /** @description The last time that posts were skipped; absent if none were. */
            lastQuarantine?: {
                time: components["schemas"]["Timestamp"];
                /** @description Why. */
                reason: string;
            };
            /** @description Why the last look gave nothing; absent when it did. */
            error?: string;
            /**
             * @description What is odd about a feed that can be read: it has no entries or more than are read, ends too early, gives several
             *     entries the same id or its entries new ids at each reading, its pages do not advance, or a part of it cannot be read
             *     (private communities among several, an instance that shows only its own members). Absent where nothing is.
             */
            notice?: string;
            /** @description The last seven UTC days on which the feed brought anything, newest first. */
            days: components["schemas"]["FeedDay"][];
        };
        /** @description What the feed brought on one UTC day, for all that watch it. */
        FeedDay: {
            /**
             * Format: date
             * @description The day of the looks; a post may be older.
             */
            day: string;
            /** @description Posts that were read, including the late ones. */
            read: number;
            /** @description Posts among them that became visible after the feed had passed their time. */
            late: number;
            /** @description Stored posts that turned out to be deleted at their source. */
            gone: number;
            /** @description Posts that were skipped because they could not be read or stored. */
            quarantined: number;
            /** @description How often posts may have been missing. */
            gapCount: number;
            /** @description The periods whose posts may be missing, newest first; of the feed's newest 100. */
            gaps: {
                /** @description Absent if the start is unknown. */
                from?: components["schemas"]["Timestamp"];
                to: components["schemas"]["Timestamp"];
                /** @description Why. */
                reason: string;
                /**
                 * @description `FILLED`: a later reading has read the whole period. An open gap is tried again about once an hour for three days,
                 *     on platforms whose lists can be read back.
                 * @enum {string}
                 */
                state: "OPEN" | "FILLED";
            }[];
            /**
             * @description Account of the ids that were checked on that day, where the platform numbers its items without gaps: each id is
             *     read, another item, gone, not visible yet, or unexplained. An id is checked ten minutes after it appears. Absent
             *     if the feed has no such ids.
             */
            ids?: {
                /** @description Every id up to this one is accounted for, since the account began. */
                upTo: number;
                /** @description Ids whose posts were read. */
                read: number;
                /** @description Ids of items that the feed does not have, such as comments. */
                other: number;
                /** @description Ids of deleted and dead items. */
                gone: number;
                /** @description Ids for which the platform has shown nothing for less than an hour. They are checked again. */
                notVisible: number;
                /**
                 * @description Ids for which the platform has shown nothing for longer. They are checked again for three days, and leave this
                 *     count when they are explained.
                 */
                unexplained: number;
                /** @description The lowest hundred of these ids. */
                unexplainedIds: number[];
            };
        };
        Place: {
            url: string;
            subforum?: {
                id: string;
                name: string;
                url: string;
            };
            time: components["schemas"]["Timestamp"];
        };
        /** @description Whether the Manager does what is expected of it. */
        ManagerHealth: {
            /**
             * @description The worst that one of the reasons stands for, `FAILING` before `NOISY` before `QUIET`.
             * @enum {string}
             */
            state: "OK" | "QUIET" | "NOISY" | "FAILING";
            /**
             * @description `FAILING`: `apply_failed` (see `applyError`; what was at work before still is), `instructions_unreadable` (a newer
             *     release wrote them; for the time of an upgrade), `feeds_failing` (none of its feeds could be read lately),
             *     `quota_exceeded` (the account has used up its Scans of a day; posts that match wait until there is room). `NOISY`:
             *     `flooded` (`maxScansPerDay` holds matches of today back), `feedback_bad` (of those of its newest 50 Scans that were
             *     judged, five or more, most were judged to be of no value). `QUIET`: `backfill_failed` (an error ended the search of a
             *     feed for posts of the past, so Scans may be missing; `:backfill` searches again), `no_posts` (its feeds had no post for
             *     a day and more).
             */
            reasons: ("apply_failed" | "instructions_unreadable" | "feeds_failing" | "quota_exceeded" | "flooded" | "feedback_bad" | "backfill_failed" | "no_posts")[];
        };
        /**
         * @description A Manager to be, with exactly one of `input` and `instructions`. Its output-only fields are ignored where they are
         *     given.
         */
        CreateManager: {
            nickname: components["schemas"]["Nickname"];
            type: components["schemas"]["ManagerType"];
            /**
             * @description A disabled Manager is compiled but matches nothing.
             * @default true
             */
            enable?: boolean;
            source: components["schemas"]["Source"];
            input?: components["schemas"]["Input"];
            instructions?: components["schemas"]["Instructions"];
            /** @description Where its Scans are delivered; each Connection once, of the same Namespace. */
            notices?: components["schemas"]["Notice"][];
            mutes?: components["schemas"]["Mutes"] | null;
            languages?: components["schemas"]["Languages"] | null;
            maxScansPerDay?: components["schemas"]["MaxScansPerDay"] | null;
            kinds?: components["schemas"]["Kinds"] | null;
            duplicates?: components["schemas"]["Duplicates"] | null;
        };
        /** @description What changes of a Manager. Output-only fields are ignored where they are given. */
        UpdateManager: {
            nickname?: components["schemas"]["Nickname"];
            type?: components["schemas"]["ManagerType"];
            enable?: boolean | null;
            /** @description As `Source`; what is left out stays as it is. */
            source?: {
                /** @enum {string} */
                type?: "FORUM" | "MICROBLOG" | "NETWORK";
            };
            /** @description As `Input`; what is left out stays as it is. */
            input?: {
                /** @enum {string} */
                type?: "STRUCTURED";
                urls?: string[];
                focus?: {
                    type?: components["schemas"]["Focus"];
                    names?: components["schemas"]["TermText"][] | null;
                };
                sensitivity?: components["schemas"]["Sensitivity"] | null;
                sells?: components["schemas"]["Sells"] | null;
            } | null;
            instructions?: components["schemas"]["Instructions"] | null;
            notices?: components["schemas"]["Notice"][] | null;
            mutes?: components["schemas"]["Mutes"] | null;
            languages?: components["schemas"]["Languages"] | null;
            maxScansPerDay?: components["schemas"]["MaxScansPerDay"] | null;
            kinds?: components["schemas"]["Kinds"] | null;
            duplicates?: components["schemas"]["Duplicates"] | null;
        };
        /**
         * @example {
         *       "managers": [
         *         {
         *           "name": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/managers/01jd3y9m1r2s3t4v5w6x7y8z9a",
         *           "createTime": "2026-11-21T01:02:03.000123Z",
         *           "updateTime": "2026-11-21T01:02:04.500000Z",
         *           "nickname": "People looking for backups",
         *           "type": "FEED_MANAGER",
         *           "enable": true,
         *           "mode": "AUTOMATIC",
         *           "state": "APPLIED",
         *           "applyTime": "2026-11-21T01:02:04.500000Z",
         *           "source": {
         *             "type": "FORUM"
         *           },
         *           "input": {
         *             "type": "STRUCTURED",
         *             "urls": [
         *               "https://example.com/backup"
         *             ],
         *             "focus": {
         *               "type": "SALES"
         *             },
         *             "sensitivity": "BALANCED"
         *           },
         *           "instructions": {
         *             "feeds": [
         *               "hackernews:newest"
         *             ],
         *             "include": [
         *               {
         *                 "text": "backup",
         *                 "weight": 2.5
         *               },
         *               {
         *                 "text": "offsite",
         *                 "weight": 1
         *               }
         *             ],
         *             "focus": "SALES",
         *             "threshold": 0.5,
         *             "brief": "Somebody looks for backup software."
         *           },
         *           "notices": [
         *             {
         *               "type": "HTTP_REQUEST",
         *               "connection": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/connections/01jd3yax4c5d6e7f8g9h0j1k2m"
         *             }
         *           ],
         *           "health": {
         *             "state": "OK",
         *             "reasons": []
         *           }
         *         }
         *       ],
         *       "nextPageToken": "eyJ2IjoxfQ"
         *     }
         */
        ManagerList: {
            managers: components["schemas"]["Manager"][];
            nextPageToken?: components["schemas"]["NextPageToken"];
        };
        /** @description Why the Manager could not be compiled; there in state `APPLY_FAILED`. */
        ApplyError: {
            /**
             * @description `quota_exceeded`: the account would watch more distinct feeds, or have more bytes of instructions, than its quotas
             *     allow. The previous instructions stay in use.
             * @enum {string}
             */
            code: "no_reachable_url" | "no_usable_content" | "forbidden_address" | "invalid_instructions" | "quota_exceeded";
            message: string;
        };
        Source: {
            /**
             * @description The family of platforms to watch.
             * @enum {string}
             */
            type: "FORUM" | "MICROBLOG" | "NETWORK";
        };
        /** @description What the instructions are compiled from. */
        Input: {
            /** @enum {string} */
            type: "STRUCTURED";
            /**
             * @description Pages about your product, and pages of communities to watch. `http` or `https`, without credentials, on public
             *     hosts.
             * @example [
             *       "https://example.com/backup"
             *     ]
             */
            urls: string[];
            focus: {
                type: components["schemas"]["Focus"];
                /** @description Names to watch: competitors, brands, products. Without them they are taken from the pages. */
                names?: components["schemas"]["TermText"][];
            };
            sensitivity?: components["schemas"]["Sensitivity"];
            sells?: components["schemas"]["Sells"];
        };
        /**
         * @description How certain the service must be that a post is worth your attention. It sets `instructions.threshold`; your feedback
         *     on Scans moves the threshold within the chosen setting. Answers always have this field. A change is compiled, as any
         *     change of `input` is.
         *
         *     `PRECISE` finds a third to a half as many posts as `BALANCED`, and more of them are worth reading. `BALANCED` is the
         *     default. `BROAD` finds one and a half to three times as many as `BALANCED`, and misses fewer relevant ones. These ratios
         *     were measured on 13 customers of our own and differ between customers: see `docs/matching-quality.md`.
         * @default BALANCED
         * @enum {string}
         */
        Sensitivity: "PRECISE" | "BALANCED" | "BROAD";
        /**
         * @description What makes a post worth attention, beside its topic: somebody wants to choose, buy or hire (`SALES`); a competitor is
         *     named, compared or judged (`COMPETITOR`); somebody complains about you (`CRISIS`).
         * @enum {string}
         */
        Focus: "SALES" | "COMPETITOR" | "CRISIS";
        /**
         * @description What a Manager looks for. A post matches when each group of `require` has a term that occurs, no term of `exclude`
         *     does, and the score reaches `threshold`. With `focus` the score is the probability that a person would keep the post, 0 to
         *     1; without it, it is the sum of the weights of the `include` terms that occur. Terms are whole words or phrases, in any case. At most 500 terms in all, and
         *     at least one in `include`, `names`, `require` or `exclude` (`required` on `instructions.include`).
         *
         *     In answers: those at work; absent until the first apply. Of a `MANUAL` Manager that is `PENDING_APPLY`, those submitted.
         */
        Instructions: {
            /**
             * @description Which feeds to watch, `<platform>:<feed>`. Without any, the newest posts of all platforms of the source.
             * @example [
             *       "hackernews:newest"
             *     ]
             */
            feeds?: string[];
            /** @description Each group must have a term that occurs. */
            require?: components["schemas"]["TermText"][][];
            /** @description Terms that add to the score. */
            include?: {
                text: components["schemas"]["TermText"];
                weight: number;
            }[];
            /** @description Names to look for. */
            names?: components["schemas"]["WatchedName"][];
            /** @description Any of these vetoes. */
            exclude?: components["schemas"]["TermText"][];
            focus?: components["schemas"]["Focus"];
            /** @description The score that a post must reach. With `focus` 0 to 1: all else is `out_of_range`. */
            threshold?: number;
            /**
             * @description Topic scores that one in ten, in a hundred and in a thousand ordinary posts reach. Only used with `focus`: they say
             *     how unusual a post's topic is. A compile sets them; without them, usual values are assumed. Stored in ascending order.
             * @example [
             *       0.4,
             *       1.2,
             *       2.6
             *     ]
             */
            backgroundScores?: number[];
            /**
             * @description Words that ordinary posts about your subject contain. Only used with `focus`: near a name they say that the post is
             *     about your subject. They never make a post match by themselves. A compile sets them.
             */
            relatedTerms?: components["schemas"]["TermText"][];
            /**
             * @description Words of what you sell, with what each counts. Only used with the focus `SALES`: a post that names none of it scores
             *     low, even if it asks for something else in your field. A compile sets them; without any, every post counts.
             */
            offers?: {
                text: components["schemas"]["TermText"];
                weight: number;
            }[];
            sells?: components["schemas"]["Sells"];
            /** @description What is relevant, in a sentence or two. */
            brief?: string;
        };
        /**
         * @description What you sell, in plain words, to compare posts with by meaning. A compile writes it to `instructions`. In `input`, each
         *     field that you give replaces what a compile takes from the pages, and the Manager stays `AUTOMATIC`. A change of
         *     `instructions.sells` makes it `MANUAL`: then verdicts on its Scans teach it nothing. An object without words counts as absent.
         */
        Sells: {
            /**
             * @description What you sell, and to whom, in a sentence or two. Without control characters, such as line breaks.
             * @example Espresso machines and grinders for the home, with spare parts and repairs.
             */
            summary?: string;
            /**
             * @description Goods and services, one phrase each. Different upper and lower case does not make a different phrase (`duplicate`). No
             *     control characters.
             * @example [
             *       "espresso machine with a lever",
             *       "hand grinder",
             *       "repair of espresso machines"
             *     ]
             */
            offers?: components["schemas"]["TermText"][];
        };
        /**
         * Format: term
         * @description At least one letter or digit, in any script; else it is `invalid_format`.
         * @example backup
         */
        TermText: string;
        WatchedName: {
            text: components["schemas"]["TermText"];
            /**
             * @description Your own name, or another's.
             * @enum {string}
             */
            kind: "OWN" | "WATCHED";
            aliases?: components["schemas"]["TermText"][];
            /**
             * @description For names that are also words: `Apple`, not `apple`.
             * @default false
             */
            caseSensitive?: boolean;
            /** @description When given, one of these must occur too for the name to count. */
            context?: components["schemas"]["TermText"][];
            /**
             * @description Percentage of ordinary posts with the name that are about your subject. Only used with `focus`: the lower it is, the
             *     less the name says by itself. A compile sets it; without it, 50 is assumed.
             */
            onTopicPercent?: number;
            /**
             * @description How many of 10,000 ordinary posts contain the name. Only used with `focus`: mentions of a name that everyone uses
             *     need more of your subject in the title. A compile sets it; without it, 0 is assumed.
             */
            ordinaryPosts?: number;
        };
        Notice: {
            /** @enum {string} */
            type: "HTTP_REQUEST";
            connection: components["schemas"]["ConnectionName"];
            /**
             * Format: filter
             * @description Only Scans that meet this condition are delivered to the Connection; absent for all. The grammar and the fields are those
             *     of the `filter` of a list of Scans. It is evaluated once, when a Scan is new: `value` is `true` and `labels` are empty then.
             *     A later change applies to later Scans. An error names the column.
             * @example match.score > 0.8 AND post.text : "price"
             */
            filter?: string;
        };
        /** @enum {string} */
        ConnectionType: "HTTP_CONNECTION";
        /**
         * @description The method of deliveries.
         * @enum {string}
         */
        DeliveryMethod: "POST" | "PUT" | "PATCH";
        /**
         * @description Sent with every delivery. Up to 8 KiB in all; none by which HTTP frames messages or manages connections, such as
         *     `Host`, `Content-Length` or `Content-Encoding`, which are `forbidden`. Stored encrypted; a key of role
         *     `VIEWER` sees `***` for each value. Where the service cannot open them any more, because its operators took away the key
         *     that they were stored with, there is one header `***` with the value `***`.
         */
        Headers: {
            [key: string]: string;
        };
        /**
         * @example {
         *       "name": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/connections/01jd3yax4c5d6e7f8g9h0j1k2m",
         *       "createTime": "2026-11-21T01:02:03.000123Z",
         *       "updateTime": "2026-11-21T01:02:03.000123Z",
         *       "nickname": "Our hook",
         *       "type": "HTTP_CONNECTION",
         *       "url": "https://hooks.example.com/earshot",
         *       "method": "POST",
         *       "headers": {
         *         "X-Webhook-Secret": "<WEBHOOK_SECRET>"
         *       },
         *       "format": "EARSHOT",
         *       "state": "ACTIVE"
         *     }
         */
        Connection: {
            name: components["schemas"]["ConnectionName"];
            createTime: components["schemas"]["Timestamp"];
            updateTime: components["schemas"]["Timestamp"];
            nickname: components["schemas"]["Nickname"];
            type: components["schemas"]["ConnectionType"];
            /**
             * Format: uri
             * @description Where deliveries go. It is a secret, since who knows the address of a hook can post there: it is stored encrypted,
             *     cannot be filtered or ordered by, and a key without write permission sees scheme and host alone. For `EMAIL` it is
             *     `mailto:` and up to 10 addresses, separated by commas.
             */
            url: string;
            method: components["schemas"]["DeliveryMethod"];
            headers: components["schemas"]["Headers"];
            format: components["schemas"]["Format"];
            maxPerSecond?: components["schemas"]["MaxPerSecond"];
            events?: components["schemas"]["Events"];
            digest?: components["schemas"]["Digest"];
            /**
             * @description Nothing is sent to a disabled Connection.
             * @enum {string}
             */
            state: "ACTIVE" | "DISABLED";
            /** @description Why it is disabled. */
            stateReason?: string;
            health?: components["schemas"]["ConnectionHealth"];
            /** @description Who gets the mails of a Connection with the format `EMAIL`. Given where a Connection is read or listed. */
            recipients?: components["schemas"]["Recipient"][];
        };
        /**
         * @description For the format `EMAIL`: the Scans of an hour or a day come in one mail when it is over, if there are any. It lists the
         *     newest 20, and says how many there are. Without it, each Scan is a mail.
         * @example {
         *       "period": "DAILY",
         *       "timeZone": "Europe/Berlin"
         *     }
         */
        Digest: {
            /** @enum {string} */
            period: "HOURLY" | "DAILY";
            /**
             * @description Where hours and days begin, as a name of the IANA time zone database.
             * @default UTC
             */
            timeZone?: string;
        };
        /**
         * @example {
         *       "address": "ada@example.com",
         *       "state": "CONFIRMED"
         *     }
         */
        Recipient: {
            /** @description A key without write permission sees `***` in place of what is before the `@`. */
            address: string;
            /**
             * @description `PENDING` until the recipient confirms the address, by a link in a mail that is sent once; setting `url` again, 30 days
             *     later at the earliest, sends another one. None is sent to an address that has unsubscribed from another Connection of
             *     the account. Only `CONFIRMED` recipients get mail. `REFUSED`: the mail server answered
             *     that there is no such address. Without a recipient who is `PENDING` or `CONFIRMED`, the Connection is disabled.
             * @enum {string}
             */
            state: "PENDING" | "CONFIRMED" | "UNSUBSCRIBED" | "REFUSED";
        };
        /**
         * @description How deliveries fare. Given where a Connection is read or listed.
         * @example {
         *       "successRate": 0.95,
         *       "lastSuccessTime": "2026-11-21T01:02:03.000123Z",
         *       "pending": 3,
         *       "oldestPendingTime": "2026-11-21T01:01:58.000000Z",
         *       "breaker": "CLOSED"
         *     }
         */
        ConnectionHealth: {
            /** @description Of the last attempts, 20 at most. Absent before the first. */
            successRate?: number;
            /** @description To about a minute. */
            lastSuccessTime?: components["schemas"]["Timestamp"];
            /** @description Deliveries that wait to be sent, or sent again; 1,000 is as many or more. */
            pending: number;
            /** @description When the oldest of those was created. */
            oldestPendingTime?: components["schemas"]["Timestamp"];
            /**
             * @description `OPEN` after many failures: nothing is sent for a while, from 30 seconds to 10 minutes, save what is retried by
             *     hand. Then, `HALF_OPEN`, one delivery shows whether the endpoint is well again.
             * @enum {string}
             */
            breaker: "CLOSED" | "OPEN" | "HALF_OPEN";
            /**
             * @description Why a digest could not be made. Absent otherwise, and once it is tried again: after a minute, then less often, at least
             *     once a day. Its Scans are kept.
             */
            digestError?: string;
        };
        /** @description A Connection to be. Its output-only fields are ignored where they are given. */
        CreateConnection: {
            nickname: components["schemas"]["Nickname"];
            type: components["schemas"]["ConnectionType"];
            /**
             * Format: uri
             * @description `https` on a public host, without credentials; `http` where the operators allow it. For the format `EMAIL`, and only
             *     for it, `mailto:` and up to 10 addresses, separated by commas.
             */
            url: string;
            method?: components["schemas"]["DeliveryMethod"];
            headers?: components["schemas"]["Headers"];
            format?: components["schemas"]["Format"];
            maxPerSecond?: components["schemas"]["MaxPerSecond"];
            signingSecrets?: components["schemas"]["SigningSecrets"];
            events?: components["schemas"]["Events"];
            digest?: components["schemas"]["Digest"];
        };
        /** @description What changes of a Connection. Output-only fields are ignored where they are given. */
        UpdateConnection: {
            nickname?: components["schemas"]["Nickname"];
            type?: components["schemas"]["ConnectionType"];
            /** Format: uri */
            url?: string;
            /** @enum {string|null} */
            method?: "POST" | "PUT" | "PATCH" | null;
            headers?: {
                [key: string]: string | null;
            } | null;
            /** @enum {string|null} */
            format?: "EARSHOT" | "SLACK" | "DISCORD" | "TEAMS" | "EMAIL" | null;
            maxPerSecond?: number | null;
            signingSecrets?: string[] | null;
            events?: components["schemas"]["ServiceEventType"][] | null;
            digest?: {
                /** @enum {string} */
                period?: "HOURLY" | "DAILY";
                timeZone?: string | null;
            } | null;
            /**
             * @description Pauses and resumes.
             * @enum {string}
             */
            state?: "ACTIVE" | "DISABLED";
        };
        /**
         * @description The shape of the body that is sent: our own, or what the incoming webhooks of a chat service take. `EMAIL` sends mail to
         *     the addresses in a `mailto:` URL; `method`, `headers` and `signingSecrets` have no meaning for it. A Connection cannot
         *     change to or from `EMAIL` (`conflict`): create another one.
         * @default EARSHOT
         * @enum {string}
         */
        Format: "EARSHOT" | "SLACK" | "DISCORD" | "TEAMS" | "EMAIL";
        /**
         * @description The most requests in a second; without it, as many as the Connection takes, or what the chat service of its `format`
         *     takes: one a second for `SLACK`, four a second for `TEAMS`. `DISCORD` gets 28 a minute whatever it is, which is what a
         *     channel takes. `EMAIL` gets what the operators allow in a minute.
         */
        MaxPerSecond: number;
        /**
         * @description With these deliveries are signed, as Standard Webhooks has it; two, so that one can take over from the other. Each is
         *     `whsec_` and the base64 of 24 to 64 bytes. Written and never shown; stored encrypted.
         */
        SigningSecrets: string[];
        /**
         * @description The types of service events that the Connection receives, from its whole Namespace; absent for none. A type concerns
         *     what happens after it was added. Up to 20 Connections of a Namespace may receive any, otherwise `quota_exceeded`.
         * @example [
         *       "MANAGER_APPLY_FAILED",
         *       "CONNECTION_DISABLED"
         *     ]
         */
        Events: components["schemas"]["ServiceEventType"][];
        /**
         * @description - `MANAGER_APPLIED`: the instructions of a Manager came into use.
         *     - `MANAGER_APPLY_FAILED`: a Manager could not be compiled; earlier instructions stay in use.
         *     - `CONNECTION_DISABLED`: the service disabled another Connection, because its server answered 410, nothing has arrived
         *       there for five days, or no recipient of its mails is left. What its owner disables causes no event.
         *     - `COVERAGE_GAP`: posts of a feed that a Manager watches may be missing. A later look may still find them.
         *       Gaps of a feed that are less than an hour apart cause one event.
         *     - `POST_DELETED`: the post of a Scan was deleted at its source, or at the request of its author. Its text and author are
         *       removed from the Scan. If many posts are deleted at once, the newest 100 Scans cause an event.
         *     - `POST_EDITED`: the text of a Scan's post was edited at its source. The Scan keeps the text that matched. An edit is
         *       found up to about a day later, and only on platforms whose posts are checked again and that show their text then.
         * @enum {string}
         */
        ServiceEventType: "MANAGER_APPLIED" | "MANAGER_APPLY_FAILED" | "CONNECTION_DISABLED" | "COVERAGE_GAP" | "POST_DELETED" | "POST_EDITED";
        /**
         * @description What a Connection receives for each service event. It contains nothing of a post but its id. More fields may come.
         * @example {
         *       "type": "MANAGER_APPLY_FAILED",
         *       "id": "01jd3yc5r6s7t8v9w0x1y2z3a4",
         *       "time": "2026-11-21T01:02:03.000123Z",
         *       "name": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/managers/01jd3y9m1r2s3t4v5w6x7y8z9a",
         *       "nickname": "Backup tools",
         *       "error": {
         *         "code": "no_reachable_url",
         *         "message": "https://example.com/ answered 404"
         *       }
         *     }
         */
        ServiceEvent: {
            type: components["schemas"]["ServiceEventType"];
            /** @description The same for all Connections, and in each attempt. */
            id: components["schemas"]["Id"];
            /** @description When it happened; for a deleted or edited post, when that was found. */
            time: components["schemas"]["Timestamp"];
            /**
             * @description What it is about: the `name` of the Manager, of the Connection, of the Scan for `POST_DELETED` and `POST_EDITED`, or
             *     of the Namespace for `COVERAGE_GAP`.
             */
            name: string;
            /** @description That of the Manager or Connection. */
            nickname?: string;
            error?: components["schemas"]["ApplyError"];
            /** @description Why the Connection was disabled. */
            reason?: string;
            /** @description Of which time posts may be missing; with `COVERAGE_GAP`. */
            gap?: {
                /** @description The name of the feed, with the query of an address as `***`. */
                feed: string;
                /** @description Absent if it is not known. */
                from?: components["schemas"]["Timestamp"];
                to: components["schemas"]["Timestamp"];
                reason: string;
            };
            /** @description The post of the Scan; with `POST_DELETED` and `POST_EDITED`. */
            post?: {
                id: string;
            };
        };
        /**
         * @example {
         *       "connections": [
         *         {
         *           "name": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/connections/01jd3yax4c5d6e7f8g9h0j1k2m",
         *           "createTime": "2026-11-21T01:02:03.000123Z",
         *           "updateTime": "2026-11-21T01:02:03.000123Z",
         *           "nickname": "Our hook",
         *           "type": "HTTP_CONNECTION",
         *           "url": "https://hooks.example.com/earshot",
         *           "method": "POST",
         *           "headers": {
         *             "X-Webhook-Secret": "<WEBHOOK_SECRET>"
         *           },
         *           "format": "EARSHOT",
         *           "state": "ACTIVE"
         *         }
         *       ],
         *       "nextPageToken": "eyJ2IjoxfQ"
         *     }
         */
        ConnectionList: {
            connections: components["schemas"]["Connection"][];
            nextPageToken?: components["schemas"]["NextPageToken"];
        };
        /** @example - */
        IdOrAny: string;
        /**
         * @description Nothing at all. An empty body, or none, does as well.
         * @example {}
         */
        Nothing: Record<string, never>;
        /**
         * @example {
         *       "ok": false,
         *       "sent": true,
         *       "statusCode": 503,
         *       "latencyMs": 212,
         *       "error": "answered 503, not 2xx"
         *     }
         */
        TestResult: {
            /** @description Whether it was acknowledged by a 2xx; under `x-test`, whether it could be sent. */
            ok: boolean;
            /** @description Whether a request was made. */
            sent: boolean;
            statusCode?: number;
            latencyMs: number;
            /** @description What went wrong, for people. */
            error?: string;
        };
        /** @example namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/connections/01jd3yax4c5d6e7f8g9h0j1k2m/deliveries/01jd3yc5r6s7t8v9w0x1y2z3a4 */
        DeliveryName: string;
        /**
         * @description `PENDING` is to be sent, `IN_FLIGHT` is being sent, `SUCCEEDED` was acknowledged, `RETRYING` has failed and is sent
         *     again, `EXHAUSTED` was given up, `CANCELLED` has lost its Connection or Scan, or its post was deleted at its source.
         * @enum {string}
         */
        DeliveryState: "PENDING" | "IN_FLIGHT" | "SUCCEEDED" | "RETRYING" | "EXHAUSTED" | "CANCELLED";
        /**
         * @description Why there was no answer, or the delivery was given up: `dns_failure`, `forbidden_address`, `connect_refused`,
         *     `connect_timeout`, `unreachable`, `tls_failure`, `proxy_failure`, `timeout`, `reset`, `protocol_error`, `invalid_request`,
         *     `expired`, `scan_expired`, `scan_deleted`, `post_deleted`, `connection_deleted`, `undecryptable_headers`, `unreadable`,
         *     `internal_error`. By e-mail also `no_confirmed_recipient`, `invalid_recipient`, `smtp_not_configured`, `smtp_unavailable`,
         *     `smtp_login_refused` and `too_many_mails`, which the operators' server or limit caused, or the recipients. More may come.
         * @example timeout
         */
        DeliveryError: string;
        /**
         * @example {
         *       "name": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/connections/01jd3yax4c5d6e7f8g9h0j1k2m/deliveries/01jd3yc5r6s7t8v9w0x1y2z3a4",
         *       "createTime": "2026-11-21T01:02:04.510000Z",
         *       "updateTime": "2026-11-21T01:02:04.730000Z",
         *       "scan": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/managers/01jd3y9m1r2s3t4v5w6x7y8z9a/scans/01jd3ybz8n9p0q1r2s3t4v5w6x",
         *       "state": "RETRYING",
         *       "attemptCount": 1,
         *       "lastAttemptTime": "2026-11-21T01:02:04.520000Z",
         *       "nextAttemptTime": "2026-11-21T01:02:09.730000Z",
         *       "lastStatusCode": 503
         *     }
         */
        Delivery: {
            name: components["schemas"]["DeliveryName"];
            createTime: components["schemas"]["Timestamp"];
            updateTime: components["schemas"]["Timestamp"];
            /** @description Absent for a service event. */
            scan?: components["schemas"]["ScanName"];
            event?: components["schemas"]["ServiceEvent"];
            state: components["schemas"]["DeliveryState"];
            attemptCount: number;
            lastAttemptTime?: components["schemas"]["Timestamp"];
            /** @description When it is sent next at the earliest; of PENDING and RETRYING alone. */
            nextAttemptTime?: components["schemas"]["Timestamp"];
            /** @description The status of the last attempt, if it was answered; by e-mail the reply of the mail server, such as 250 or 550. */
            lastStatusCode?: number;
            lastError?: components["schemas"]["DeliveryError"];
        };
        /**
         * @example {
         *       "name": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/connections/01jd3yax4c5d6e7f8g9h0j1k2m/deliveries/01jd3yc5r6s7t8v9w0x1y2z3a4",
         *       "createTime": "2026-11-21T01:02:04.510000Z",
         *       "updateTime": "2026-11-21T01:02:04.730000Z",
         *       "scan": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/managers/01jd3y9m1r2s3t4v5w6x7y8z9a/scans/01jd3ybz8n9p0q1r2s3t4v5w6x",
         *       "state": "RETRYING",
         *       "attemptCount": 1,
         *       "lastAttemptTime": "2026-11-21T01:02:04.520000Z",
         *       "nextAttemptTime": "2026-11-21T01:02:09.730000Z",
         *       "lastStatusCode": 503,
         *       "attempts": [
         *         {
         *           "time": "2026-11-21T01:02:04.520000Z",
         *           "statusCode": 503,
         *           "latencyMs": 210,
         *           "phases": {
         *             "dnsMs": 4,
         *             "connectMs": 31,
         *             "tlsMs": 68,
         *             "firstByteMs": 207
         *           },
         *           "address": "203.0.113.7",
         *           "responseBody": "busy"
         *         }
         *       ]
         *     }
         */
        DeliveryWithAttempts: {
            name: components["schemas"]["DeliveryName"];
            createTime: components["schemas"]["Timestamp"];
            updateTime: components["schemas"]["Timestamp"];
            /** @description Absent for a service event. */
            scan?: components["schemas"]["ScanName"];
            event?: components["schemas"]["ServiceEvent"];
            state: components["schemas"]["DeliveryState"];
            attemptCount: number;
            lastAttemptTime?: components["schemas"]["Timestamp"];
            /** @description When it is sent next at the earliest; of PENDING and RETRYING alone. */
            nextAttemptTime?: components["schemas"]["Timestamp"];
            /** @description The status of the last attempt, if it was answered; by e-mail the reply of the mail server, such as 250 or 550. */
            lastStatusCode?: number;
            lastError?: components["schemas"]["DeliveryError"];
            attempts: components["schemas"]["DeliveryAttempt"][];
        };
        DeliveryAttempt: {
            time: components["schemas"]["Timestamp"];
            statusCode?: number;
            error?: components["schemas"]["DeliveryError"];
            latencyMs: number;
            /** @description Where the time went; what did not take place, on a connection that was there, is absent. */
            phases: {
                dnsMs?: number;
                connectMs?: number;
                tlsMs?: number;
                firstByteMs?: number;
            };
            /** @description The IP address that was talked to. */
            address?: string;
            /**
             * @description The beginning of the answer, as text: the first 4 KiB of a failed attempt, but of a Connection's attempts only one in five
             *     minutes; of others the first 256 bytes.
             */
            responseBody?: string;
        };
        /**
         * @example {
         *       "deliveries": [
         *         {
         *           "name": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/connections/01jd3yax4c5d6e7f8g9h0j1k2m/deliveries/01jd3yc5r6s7t8v9w0x1y2z3a4",
         *           "createTime": "2026-11-21T01:02:04.510000Z",
         *           "updateTime": "2026-11-21T01:02:04.730000Z",
         *           "scan": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/managers/01jd3y9m1r2s3t4v5w6x7y8z9a/scans/01jd3ybz8n9p0q1r2s3t4v5w6x",
         *           "state": "RETRYING",
         *           "attemptCount": 1,
         *           "lastAttemptTime": "2026-11-21T01:02:04.520000Z",
         *           "nextAttemptTime": "2026-11-21T01:02:09.730000Z",
         *           "lastStatusCode": 503
         *         }
         *       ],
         *       "nextPageToken": "eyJ2IjoxfQ"
         *     }
         */
        DeliveryList: {
            deliveries: components["schemas"]["Delivery"][];
            nextPageToken?: components["schemas"]["NextPageToken"];
        };
        /**
         * @description One change, or one reading of secrets. It has the names of fields, never their values.
         * @example {
         *       "name": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/auditEvents/01jd3yd7w8x9y0z1a2b3c4d5e6",
         *       "createTime": "2026-11-21T02:00:00.000000Z",
         *       "action": "UPDATE",
         *       "resource": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/connections/01jd3yax4c5d6e7f8g9h0j1k2m",
         *       "fields": [
         *         "nickname",
         *         "url"
         *       ],
         *       "actor": {
         *         "type": "API_KEY",
         *         "key": "01jd3y7a6b5c4d3e2f1g0h9j8k"
         *       },
         *       "clientAddress": "203.0.113.7",
         *       "requestId": "01jd3yd7w8x9y0z1a2b3c4d5e7"
         *     }
         */
        AuditEvent: {
            /** @description `namespaces/-/auditEvents/…` for changes that belong to the whole account. */
            name: string;
            createTime: components["schemas"]["Timestamp"];
            /**
             * @description `READ_SECRETS`: a response contained the addresses or header values of Connections; recorded once an hour for each key, resource and client address. Responses to `CREATE`, `UPDATE` and `ENABLE` of a Connection contain them too.
             * @enum {string}
             */
            action: "CREATE" | "UPDATE" | "DELETE" | "APPLY" | "BACKFILL" | "ENABLE" | "TEST" | "REPLAY" | "CANCEL" | "RETRY" | "READ_SECRETS" | "REVOKE";
            /** @description The name of the changed resource, which may be deleted by now; `keys/…` for an API key, `people/…/sessions/…` for a sign-in to the console, `quotas` for those of the account. */
            resource: string;
            /** @description Names of the fields that an update sent. */
            fields?: string[];
            actor: {
                /**
                 * @description `OPERATOR`: a person who used `earshot` with access to the database.
                 * @enum {string}
                 */
                type: "API_KEY" | "OPERATOR";
                /** @description The id of the API key. */
                key?: string;
            };
            /** @description The client's IP address, behind trusted proxies. */
            clientAddress?: string;
            /** @description The request's `X-Request-Id`. */
            requestId?: string;
        };
        /**
         * @example {
         *       "auditEvents": [
         *         {
         *           "name": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/auditEvents/01jd3yd7w8x9y0z1a2b3c4d5e6",
         *           "createTime": "2026-11-21T02:00:00.000000Z",
         *           "action": "UPDATE",
         *           "resource": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/connections/01jd3yax4c5d6e7f8g9h0j1k2m",
         *           "fields": [
         *             "nickname",
         *             "url"
         *           ],
         *           "actor": {
         *             "type": "API_KEY",
         *             "key": "01jd3y7a6b5c4d3e2f1g0h9j8k"
         *           },
         *           "clientAddress": "203.0.113.7",
         *           "requestId": "01jd3yd7w8x9y0z1a2b3c4d5e7"
         *         }
         *       ],
         *       "nextPageToken": "eyJ2IjoxfQ"
         *     }
         */
        AuditEventList: {
            auditEvents: components["schemas"]["AuditEvent"][];
            nextPageToken?: components["schemas"]["NextPageToken"];
        };
        /** @example namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/connections/01jd3yax4c5d6e7f8g9h0j1k2m/replays/01jd3yd7w8x9y0z1a2b3c4d5e6 */
        ReplayName: string;
        /**
         * @example {
         *       "name": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/connections/01jd3yax4c5d6e7f8g9h0j1k2m/replays/01jd3yd7w8x9y0z1a2b3c4d5e6",
         *       "createTime": "2026-11-21T02:00:00.000000Z",
         *       "updateTime": "2026-11-21T02:00:01.200000Z",
         *       "startTime": "2026-11-20T00:00:00.000000Z",
         *       "endTime": "2026-11-21T02:00:00.000000Z",
         *       "states": [
         *         "EXHAUSTED"
         *       ],
         *       "state": "RUNNING",
         *       "total": 1200,
         *       "done": 550
         *     }
         */
        Replay: {
            name: components["schemas"]["ReplayName"];
            createTime: components["schemas"]["Timestamp"];
            updateTime: components["schemas"]["Timestamp"];
            startTime: components["schemas"]["Timestamp"];
            endTime: components["schemas"]["Timestamp"];
            /** @description Of the deliveries that are reopened; absent for all. */
            states?: components["schemas"]["DeliveryState"][];
            /**
             * @description `DONE` when all are reopened; whether they arrive, the deliveries tell.
             * @enum {string}
             */
            state: "RUNNING" | "DONE" | "CANCELLED";
            /** @description How many deliveries are to be reopened; of more than 20,000 at least so many, until they are counted. */
            total: number;
            /** @description How many were. */
            done: number;
        };
        CreateReplay: {
            /**
             * Format: date-time
             * @example 2026-11-21T01:00:00Z
             */
            startTime: string;
            /**
             * Format: date-time
             * @example 2026-11-21T01:00:00Z
             */
            endTime?: string;
            states?: components["schemas"]["DeliveryState"][];
        };
        /**
         * @example {
         *       "replays": [
         *         {
         *           "name": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/connections/01jd3yax4c5d6e7f8g9h0j1k2m/replays/01jd3yd7w8x9y0z1a2b3c4d5e6",
         *           "createTime": "2026-11-21T02:00:00.000000Z",
         *           "updateTime": "2026-11-21T02:00:01.200000Z",
         *           "startTime": "2026-11-20T00:00:00.000000Z",
         *           "endTime": "2026-11-21T02:00:00.000000Z",
         *           "states": [
         *             "EXHAUSTED"
         *           ],
         *           "state": "RUNNING",
         *           "total": 1200,
         *           "done": 550
         *         }
         *       ],
         *       "nextPageToken": "eyJ2IjoxfQ"
         *     }
         */
        ReplayList: {
            replays: components["schemas"]["Replay"][];
            nextPageToken?: components["schemas"]["NextPageToken"];
        };
        /**
         * @example {
         *       "name": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/managers/01jd3y9m1r2s3t4v5w6x7y8z9a/scans/01jd3ybz8n9p0q1r2s3t4v5w6x",
         *       "createTime": "2026-11-21T01:02:04.500000Z",
         *       "updateTime": "2026-11-21T01:02:04.500000Z",
         *       "value": true,
         *       "labels": [
         *         "lead"
         *       ],
         *       "match": {
         *         "score": 0.59,
         *         "terms": [
         *           "backup",
         *           "offsite",
         *           "nas"
         *         ],
         *         "focus": "SALES"
         *       },
         *       "post": {
         *         "type": "FORUM_LINK",
         *         "time": "2026-11-21T01:00:00.000000Z",
         *         "id": "hackernews:1795240144",
         *         "title": "Ask HN: Which backup software for a small team?",
         *         "text": "Eight laptops and a NAS. Looking for encrypted offsite backups.",
         *         "url": "https://news.ycombinator.com/item?id=1795240144",
         *         "subforum": {
         *           "id": "ask",
         *           "name": "Ask HN",
         *           "url": "https://news.ycombinator.com/ask"
         *         },
         *         "user": {
         *           "id": "pat",
         *           "name": "pat",
         *           "url": "https://news.ycombinator.com/user?id=pat"
         *         }
         *       }
         *     }
         */
        Scan: {
            name: components["schemas"]["ScanName"];
            createTime: components["schemas"]["Timestamp"];
            updateTime: components["schemas"]["Timestamp"];
            post: components["schemas"]["Post"];
            /** @description Whether the post is worth attention. True when the Scan is made; yours once you set it. */
            value: boolean;
            labels: components["schemas"]["Labels"];
            match: components["schemas"]["Match"];
            /**
             * @description Where the same was found again, of a Manager with `duplicates: COLLAPSE`; absent where it was not. `updateTime` does
             *     not tell of it.
             */
            places?: components["schemas"]["Place"][];
        };
        /** @description Why the post matched; in a preview, what speaks for one that does not, too. */
        Match: {
            /**
             * @description With `focus`, the probability that a person would keep the post, 0 to 1; 0 where a quick look ruled the post out.
             *     Without `focus`, the sum of the weights of the `include` terms that occur.
             */
            score: number;
            /** @description The terms and names that counted, strongest first; at most 50. */
            terms: string[];
            focus?: components["schemas"]["Focus"];
            /** @description Where they stand, in the order of the post; of matches alone, and of those made by this release on. */
            spans?: {
                /** @enum {string} */
                field: "title" | "text";
                /** @description In code points, from the beginning of the field. */
                start: number;
                /** @description The first code point behind it. */
                end: number;
                term: string;
            }[];
            /** @description With a focus, how far the post is of each kind, whatever it is about. */
            signals?: {
                /** @description Somebody wants to choose, buy or hire. */
                buying: number;
                /** @description Things are weighed against each other. */
                comparison: number;
                /** @description Somebody complains or needs help. */
                trouble: number;
            };
            /** @description True if the LLM filter decided: the operator's model was asked about the post, and its answer replaced the decision by the threshold. The score can then lie below the threshold. Absent otherwise: a filter says `NOT match.judged = true`. */
            judged?: boolean;
            /**
             * @description May be present with a focus, where the operator configured the reader, which compares posts with `instructions.sells`.
             *     `JUDGED`: the score is the reader's. The others say why it is not: the Manager's budget of the day is spent
             *     (`OVER_BUDGET`), other posts had the turns (`BUSY`), the reader does not work (`UNAVAILABLE`), the instructions do
             *     not say what is sold (`NO_OFFERS`), the post or what is sold is not in English (`OTHER_LANGUAGE`), or the post has no
             *     title (`UNTITLED`). More may come. `:preview` decides without the reader, so a post can have another score there.
             * @enum {string}
             */
            reader?: "JUDGED" | "OVER_BUDGET" | "BUSY" | "UNAVAILABLE" | "NO_OFFERS" | "OTHER_LANGUAGE" | "UNTITLED";
        };
        /** @description Exactly one of `posts`, `recent` and `urls`. */
        Preview: {
            posts?: components["schemas"]["PreviewPost"][];
            /**
             * @description So many of the newest posts of the Manager's feeds, or of those of the draft; of these, such that a Manager of the
             *     Namespace watches, or that have everything new on a platform.
             */
            recent?: number;
            startTime?: components["schemas"]["RecentStartTime"];
            endTime?: components["schemas"]["RecentEndTime"];
            /** @description Posts that were read, by `url` or `id`. */
            urls?: string[];
            /** @description A draft, in the place of those at work; required where none are. */
            instructions?: components["schemas"]["Instructions"];
        };
        /** @description A draft of a Manager, and exactly one of `posts`, `recent` and `urls`. */
        PreviewDraft: {
            source: components["schemas"]["Source"];
            instructions: components["schemas"]["Instructions"];
            mutes?: components["schemas"]["Mutes"];
            languages?: components["schemas"]["Languages"];
            /** @description For `posts` of yours. Of `recent` ones and `urls`, the feeds decide: comments have feeds of their own. */
            kinds?: components["schemas"]["Kinds"];
            posts?: components["schemas"]["PreviewPost"][];
            /** @description As for `previewManager`. */
            recent?: number;
            startTime?: components["schemas"]["RecentStartTime"];
            endTime?: components["schemas"]["RecentEndTime"];
            /** @description Posts that were read, by `url` or `id`. */
            urls?: string[];
        };
        /**
         * Format: date-time
         * @description Only with `recent`. Leaves out posts that are older than this.
         */
        RecentStartTime: string;
        /**
         * Format: date-time
         * @description Only with `recent`. Leaves out posts of this time, and younger ones. To read more than 100 posts, send the `time` of
         *     the oldest one plus a microsecond: other posts of the same time may be missing, and this one comes again.
         */
        RecentEndTime: string;
        /**
         * @description A post in the form of `Post`. Its `id` begins with the platform and a colon, as those of Scans do, if it is to be held
         *     against the feeds.
         */
        PreviewPost: {
            /** @enum {string} */
            type: "FORUM_LINK" | "FORUM_COMMENT" | "MICROBLOG_TWEET" | "NETWORK_POST";
            time: components["schemas"]["Timestamp"];
            id: string;
            title?: string;
            text?: string;
            url: string;
            subforum?: components["schemas"]["PreviewPlace"];
            user: components["schemas"]["PreviewPlace"];
        };
        PreviewPlace: {
            id: string;
            name: string;
            url: string;
        };
        /**
         * @example {
         *       "results": [
         *         {
         *           "value": true,
         *           "match": {
         *             "score": 3.5,
         *             "terms": [
         *               "backup",
         *               "offsite"
         *             ],
         *             "spans": [
         *               {
         *                 "field": "title",
         *                 "start": 14,
         *                 "end": 20,
         *                 "term": "backup"
         *               },
         *               {
         *                 "field": "text",
         *                 "start": 50,
         *                 "end": 57,
         *                 "term": "offsite"
         *               }
         *             ]
         *           },
         *           "reason": "MATCHED"
         *         }
         *       ]
         *     }
         */
        PreviewResults: {
            results: {
                /** @description As it was asked for, of `urls`. */
                url?: string;
                post?: components["schemas"]["Post"];
                /** @description Whether it would be a Scan. */
                value: boolean;
                match: components["schemas"]["Match"];
                /**
                 * @description What decided. `NOT_WATCHED`: read through other feeds than the Manager's; of a post of yours, of another type
                 *     than its source and `kinds`, or of a platform that none of its feeds is of. `MUTED`, `LANGUAGE`: it matched,
                 *     and was kept out. `NEVER_SEEN`: no such post was read lately.
                 * @enum {string}
                 */
                reason: "MATCHED" | "BELOW_THRESHOLD" | "REQUIRE" | "EXCLUDE" | "MUTED" | "LANGUAGE" | "NOT_WATCHED" | "NEVER_SEEN";
            }[];
            /**
             * @description Only with `recent`: since then, all posts of the feeds are stored, and of some feeds longer. Earlier days are not covered.
             *     Absent if a feed stores none yet. Feeds that no Manager of the Namespace watches are left out.
             */
            keptSince?: components["schemas"]["Timestamp"];
        };
        /** @description Words of your own, each once. A filter finds one by a part of it: `labels : "lead"`. */
        Labels: string[];
        /** @description What changes of a Scan. Output-only fields are ignored where they are given. */
        UpdateScan: {
            value?: boolean;
            labels?: components["schemas"]["Labels"] | null;
        };
        /**
         * @example {
         *       "scans": [
         *         {
         *           "name": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/managers/01jd3y9m1r2s3t4v5w6x7y8z9a/scans/01jd3ybz8n9p0q1r2s3t4v5w6x",
         *           "createTime": "2026-11-21T01:02:04.500000Z",
         *           "updateTime": "2026-11-21T01:02:04.500000Z",
         *           "value": true,
         *           "labels": [],
         *           "match": {
         *             "score": 0.59,
         *             "terms": [
         *               "backup",
         *               "offsite",
         *               "nas"
         *             ],
         *             "focus": "SALES"
         *           },
         *           "post": {
         *             "type": "FORUM_LINK",
         *             "time": "2026-11-21T01:00:00.000000Z",
         *             "id": "hackernews:1795240144",
         *             "title": "Ask HN: Which backup software for a small team?",
         *             "text": "Eight laptops and a NAS. Looking for encrypted offsite backups.",
         *             "url": "https://news.ycombinator.com/item?id=1795240144",
         *             "subforum": {
         *               "id": "ask",
         *               "name": "Ask HN",
         *               "url": "https://news.ycombinator.com/ask"
         *             },
         *             "user": {
         *               "id": "pat",
         *               "name": "pat",
         *               "url": "https://news.ycombinator.com/user?id=pat"
         *             }
         *           }
         *         }
         *       ],
         *       "nextPageToken": "eyJ2IjoxfQ"
         *     }
         */
        ScanList: {
            scans: components["schemas"]["Scan"][];
            nextPageToken?: components["schemas"]["NextPageToken"];
        };
        /**
         * @example {
         *       "type": "FORUM_LINK",
         *       "time": "2026-11-21T01:00:00.000000Z",
         *       "id": "hackernews:1795240144",
         *       "title": "Ask HN: Which backup software for a small team?",
         *       "text": "Eight laptops and a NAS. Looking for encrypted offsite backups.",
         *       "url": "https://news.ycombinator.com/item?id=1795240144",
         *       "subforum": {
         *         "id": "ask",
         *         "name": "Ask HN",
         *         "url": "https://news.ycombinator.com/ask"
         *       },
         *       "user": {
         *         "id": "pat",
         *         "name": "pat",
         *         "url": "https://news.ycombinator.com/user?id=pat"
         *       }
         *     }
         */
        Post: {
            /**
             * @description A `FORUM_LINK` always has `title` and `subforum`; a `MICROBLOG_TWEET` has `text` and no `title`; a `NETWORK_POST`
             *     has `text`, and `title` when there is one. A `FORUM_COMMENT` has `text`, and `subforum` where the platform says it.
             *     Of a post that was deleted at its source, `title`, `text` and the fields of `user` become empty, where its platform
             *     tells of deletions or the operator has them looked for; its `id` and `url` stay.
             * @enum {string}
             */
            type: "FORUM_LINK" | "FORUM_COMMENT" | "MICROBLOG_TWEET" | "NETWORK_POST";
            time: components["schemas"]["Timestamp"];
            /** @description The platform's; unique over everything that a receiver may get. */
            id: string;
            title?: string;
            /** @description Plain text. */
            text?: string;
            url: string;
            subforum?: {
                id: string;
                name: string;
                url: string;
            };
            /** @description The author; the feed or site itself where the platform names none. */
            user: {
                id: string;
                name: string;
                url: string;
            };
        };
        /**
         * @description What a Connection receives for each Scan.
         * @example {
         *       "type": "SCAN",
         *       "name": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/managers/01jd3y9m1r2s3t4v5w6x7y8z9a/scans/01jd3ybz8n9p0q1r2s3t4v5w6x",
         *       "post": {
         *         "type": "FORUM_LINK",
         *         "time": "2026-11-21T01:00:00.000000Z",
         *         "id": "hackernews:1795240144",
         *         "title": "Ask HN: Which backup software for a small team?",
         *         "text": "Eight laptops and a NAS. Looking for encrypted offsite backups.",
         *         "url": "https://news.ycombinator.com/item?id=1795240144",
         *         "subforum": {
         *           "id": "ask",
         *           "name": "Ask HN",
         *           "url": "https://news.ycombinator.com/ask"
         *         },
         *         "user": {
         *           "id": "pat",
         *           "name": "pat",
         *           "url": "https://news.ycombinator.com/user?id=pat"
         *         }
         *       }
         *     }
         */
        "namespace-feed-notice-request-body": {
            /** @enum {string} */
            type: "SCAN";
            name: components["schemas"]["ScanName"];
            post: components["schemas"]["Post"];
        };
        /** @enum {string} */
        Interval: "1m" | "1h" | "1d";
        /**
         * @example {
         *       "interval": "1h",
         *       "points": [
         *         {
         *           "time": "2026-11-21T01:00:00.000000Z",
         *           "posts": 4211,
         *           "scans": 12,
         *           "suppressed": 0,
         *           "scanDelayMs": {
         *             "p50": 2815,
         *             "p99": 9215
         *           }
         *         }
         *       ]
         *     }
         */
        Stats: {
            interval: components["schemas"]["Interval"];
            /** @description In the order of time, one for each interval; those without anything are all zeros. */
            points: components["schemas"]["StatsPoint"][];
        };
        /**
         * @description What happened in one interval. Only what the resource has is in it.
         * @example {
         *       "time": "2026-11-21T01:00:00.000000Z",
         *       "posts": 4211,
         *       "scans": 12,
         *       "suppressed": 0,
         *       "deliveries": {
         *         "succeeded": 12,
         *         "failedAttempts": 1,
         *         "exhausted": 0
         *       },
         *       "scanDelayMs": {
         *         "p50": 2815,
         *         "p99": 9215
         *       },
         *       "deliveryDelayMs": {
         *         "p50": 47,
         *         "p99": 1151
         *       }
         *     }
         */
        StatsPoint: {
            /** @description The beginning of the interval. */
            time: components["schemas"]["Timestamp"];
            /**
             * Format: int64
             * @description Posts read from the feeds that are watched now.
             */
            posts?: number;
            /** Format: int64 */
            scans?: number;
            /**
             * Format: int64
             * @description Matches of which no Scan was made, for there were too many.
             */
            suppressed?: number;
            deliveries?: {
                /** Format: int64 */
                succeeded: number;
                /** Format: int64 */
                failedAttempts: number;
                /**
                 * Format: int64
                 * @description Deliveries that were given up.
                 */
                exhausted: number;
            };
            /** @description From the making of a post to its Scan. */
            scanDelayMs?: components["schemas"]["Quantiles"];
            /** @description From a Scan to its acknowledgement by your server. */
            deliveryDelayMs?: components["schemas"]["Quantiles"];
        };
        /** @description In milliseconds, at most an eighth above the truth; zero where nothing was measured. */
        Quantiles: {
            /** Format: int64 */
            p50: number;
            /** Format: int64 */
            p99: number;
        };
        Error: {
            /** @description The HTTP status code. */
            code: number;
            /** @description Short, lower-case, for people. */
            message: string;
            /** @description There when fields failed; all of them, up to 1,000. */
            details?: {
                /**
                 * @description The path of the field in the body, such as `input.urls[0]`; the name of a query parameter or header; `body`
                 *     for a body that is no object. An empty name is shown as `""`.
                 * @example input.urls[0]
                 */
                field: string;
                issue: components["schemas"]["Issue"];
            }[];
        };
        /**
         * @description `required`: must be given. `too_short`, `too_long`: characters, bytes, or too few items. `too_many`: items.
         *     `out_of_range`: a number beyond its bounds. `invalid_type`: another JSON type is expected. `invalid_format`: the right
         *     type in a wrong form. `invalid_enum`: not one of the closed set of words. `too_costly`: takes longer than a request
         *     may; `message` says how to narrow it. `quota_exceeded`: the account has as many as it may; `GET /v1/caller` shows
         *     its quotas, and the operators can raise them. `unknown_field`: no such field or parameter.
         *     `duplicate`: twice, where it may stand once. `not_found`: what it names does not exist. `not_empty`, `in_use`: `force`
         *     is needed. `forbidden`: not allowed here. `forbidden_address`: not a public address, or a port that is not permitted. `conflict`: contradicts another
         *     field.
         * @enum {string}
         */
        Issue: "required" | "too_short" | "too_long" | "too_many" | "out_of_range" | "invalid_type" | "invalid_format" | "invalid_enum" | "too_costly" | "quota_exceeded" | "unknown_field" | "duplicate" | "not_found" | "not_empty" | "in_use" | "forbidden" | "forbidden_address" | "conflict";
    };
    responses: {
        /** @description What was asked about is still the same. */
        NotModified: {
            headers: {
                "X-Request-Id": components["headers"]["XRequestId"];
                ETag: components["headers"]["ETag"];
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description Fields, parameters or headers failed, which `details` names; or the body is no JSON. */
        BadRequest: {
            headers: {
                "X-Request-Id": components["headers"]["XRequestId"];
                "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                "X-Test": components["headers"]["XTest"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": 400,
                 *       "message": "invalid request: nickname: too short",
                 *       "details": [
                 *         {
                 *           "field": "nickname",
                 *           "issue": "too_short"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The API key is missing, or does not work (any more). */
        Unauthorized: {
            headers: {
                "X-Request-Id": components["headers"]["XRequestId"];
                "X-Test": components["headers"]["XTest"];
                "WWW-Authenticate": components["headers"]["WwwAuthenticate"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": 401,
                 *       "message": "api key missing or invalid"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The API key works, but not for this Namespace, not for this operation, or not from the client's address. */
        Forbidden: {
            headers: {
                "X-Request-Id": components["headers"]["XRequestId"];
                "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                "X-Test": components["headers"]["XTest"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": 403,
                 *       "message": "api key not permitted for this namespace"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description No such resource. */
        NotFound: {
            headers: {
                "X-Request-Id": components["headers"]["XRequestId"];
                "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                "X-Test": components["headers"]["XTest"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": 404,
                 *       "message": "manager not found"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The head of the request did not arrive within 10 seconds, or its body not within 30. */
        Timeout: {
            headers: {
                "X-Request-Id": components["headers"]["XRequestId"];
                "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                "X-Test": components["headers"]["XTest"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": 408,
                 *       "message": "request body did not arrive in time"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The body has more than 256 KiB. */
        TooLarge: {
            headers: {
                "X-Request-Id": components["headers"]["XRequestId"];
                "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                "X-Test": components["headers"]["XTest"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": 413,
                 *       "message": "request body larger than 262144 bytes"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The body's `Content-Type` is not `application/json`, or it is compressed. */
        UnsupportedMediaType: {
            headers: {
                "X-Request-Id": components["headers"]["XRequestId"];
                "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                "X-Test": components["headers"]["XTest"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": 415,
                 *       "message": "content type must be application/json"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description The key, or its account, has spent its points for now, its account reads two costly lists already, has more requests open than are
         *     served at a time or leaves responses unread, or too many keys that do not work came from this address. `Retry-After` says when to come again.
         */
        TooManyRequests: {
            headers: {
                "X-Request-Id": components["headers"]["XRequestId"];
                "X-Test": components["headers"]["XTest"];
                "Retry-After": components["headers"]["RetryAfter"];
                "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": 429,
                 *       "message": "rate limit exceeded"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The request line and the headers are too large. */
        HeadTooLarge: {
            headers: {
                "X-Request-Id": components["headers"]["XRequestId"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": 431,
                 *       "message": "request header fields too large"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description A fault of ours. Trying again may help. */
        InternalError: {
            headers: {
                "X-Request-Id": components["headers"]["XRequestId"];
                "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                "X-Test": components["headers"]["XTest"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": 500,
                 *       "message": "internal error"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The service cannot answer for the moment, or the list took longer than 2 seconds to read. */
        Unavailable: {
            headers: {
                "X-Request-Id": components["headers"]["XRequestId"];
                "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                "X-Test": components["headers"]["XTest"];
                "Retry-After": components["headers"]["RetryAfter"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "code": 503,
                 *       "message": "service temporarily unavailable"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
    };
    parameters: {
        /** @description The last segment of the Namespace's `name`. */
        NamespaceId: components["schemas"]["Id"];
        /** @description The last segment of the Namespace's `name`, or `-` for the whole account. */
        NamespaceIdOrAny: components["schemas"]["IdOrAny"];
        /** @description The last segment of the Manager's `name`. */
        ManagerId: components["schemas"]["Id"];
        /** @description The last segment of the Manager's `name`, or `-` for all Managers of the Namespace. */
        ManagerIdOrAny: components["schemas"]["IdOrAny"];
        /** @description The last segment of the Scan's `name`. */
        ScanId: components["schemas"]["Id"];
        /** @description The last segment of the Connection's `name`. */
        ConnectionId: components["schemas"]["Id"];
        /** @description The last segment of the Connection's `name`, or `-` for all Connections of the Namespace. */
        ConnectionIdOrAny: components["schemas"]["IdOrAny"];
        /** @description The last segment of the delivery's `name`. */
        DeliveryId: components["schemas"]["Id"];
        /** @description The last segment of the Replay's `name`. */
        ReplayId: components["schemas"]["Id"];
        /**
         * @description The most items that a page may have. 0 is 5; what is over 100 is 100. A page ends earlier at 4 MB.
         * @example 20
         */
        PageSize: number;
        /** @description The `nextPageToken` of the page before. It works with the same `filter` and `orderBy` alone; `pageSize` may change. */
        PageToken: string;
        /**
         * @description Which items to list; all without it. See the introduction.
         * @example createTime > "2026-11-21T00:00:00Z"
         */
        Filter: string;
        /**
         * @description How to order the items. See the introduction.
         * @example createTime asc
         */
        OrderBy: string;
        /** @description The beginning of the span. The point that it falls into is the first, and whole. */
        StartTime: string;
        /** @description The end of the span, which is not in it. Now, without it. */
        EndTime: string;
        /**
         * @description How much time a point stands for; an hour, without it. A span of more than 1,000 points is refused as `too_many`.
         *     Points of a minute are kept for 2 days, those of an hour for 40, those of a day for 400.
         */
        Interval: components["schemas"]["Interval"];
        /**
         * @description Makes the request safe to repeat: for 24 hours, the same request with the same key gets the answer that it got
         *     first, and makes nothing new. With another body it is refused. Of one API key and one path; only what was
         *     made is remembered, not what failed. An account stores 250 MB of answers a day (UTC); beyond, a new key is refused as
         *     `quota_exceeded`.
         * @example 7c0f2e6a-order-42
         */
        IdempotencyKey: string;
        /**
         * @description What to change, as paths separated by commas: `nickname`, `input.focus.type`; `*` for the whole resource. What is named
         *     is replaced, maps and lists whole; what is named and not in the body, or `null` there, is cleared, and `required` where
         *     it must be given. Without a mask the body is merged.
         * @example nickname
         */
        UpdateMask: string;
        /** @description Whether to delete all the same what holds, or is named by, others. */
        Force: boolean;
        /**
         * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
         *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
         * @example true
         */
        XTest: string;
        /**
         * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
         *     makes one up.
         * @example 5f0c1f7e-import-17
         */
        XRequestId: string;
        /**
         * @description The `ETag` of an earlier answer. While it is still the same, the answer is 304 and has no body.
         * @example W/"0123456789abcdef"
         */
        IfNoneMatch: string;
    };
    requestBodies: never;
    headers: {
        /** @description Changes with the document. */
        ETag: string;
        /** @description What to name when asking about this request. */
        XRequestId: string;
        /** @description There, and `true`, when this is the first answer to a request that came again. */
        IdempotencyReplayed: "true";
        /** @description There, and `true`, when the request was made in test mode. */
        XTest: "true";
        /** @description When one of its Scans changed last. */
        LastModified: string;
        /** @description How to authenticate. */
        WwwAuthenticateReader: string;
        /** @description How to authenticate. */
        WwwAuthenticate: "Bearer";
        /** @description Seconds to wait before the next try. */
        RetryAfter: number;
        /** @description How many points the key, or its account if that has fewer left, may spend within the window, a minute. On each answer to a key that works. */
        RateLimitLimit: number;
        /** @description How many points are left in the window. On each answer to a key that works. */
        RateLimitRemaining: number;
        /** @description When the window ends, in seconds since 1970-01-01T00:00:00Z. On each answer to a key that works. */
        RateLimitReset: number;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    getCaller: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What the key may do. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Caller"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listNamespaces: {
        parameters: {
            query?: {
                /**
                 * @description The most items that a page may have. 0 is 5; what is over 100 is 100. A page ends earlier at 4 MB.
                 * @example 20
                 */
                pageSize?: components["parameters"]["PageSize"];
                /** @description The `nextPageToken` of the page before. It works with the same `filter` and `orderBy` alone; `pageSize` may change. */
                pageToken?: components["parameters"]["PageToken"];
                /**
                 * @description Which items to list; all without it. See the introduction.
                 * @example createTime > "2026-11-21T00:00:00Z"
                 */
                filter?: components["parameters"]["Filter"];
                /**
                 * @description How to order the items. See the introduction.
                 * @example createTime asc
                 */
                orderBy?: components["parameters"]["OrderBy"];
            };
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NamespaceList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    createNamespace: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description Makes the request safe to repeat: for 24 hours, the same request with the same key gets the answer that it got
                 *     first, and makes nothing new. With another body it is refused. Of one API key and one path; only what was
                 *     made is remembered, not what failed. An account stores 250 MB of answers a day (UTC); beyond, a new key is refused as
                 *     `quota_exceeded`.
                 * @example 7c0f2e6a-order-42
                 */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "nickname": "Acme"
                 *     }
                 */
                "application/json": components["schemas"]["CreateNamespace"];
            };
        };
        responses: {
            /** @description The new Namespace. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "Idempotency-Replayed": components["headers"]["IdempotencyReplayed"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Namespace"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getNamespace: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The Namespace. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Namespace"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteNamespace: {
        parameters: {
            query?: {
                /** @description Whether to delete all the same what holds, or is named by, others. */
                force?: components["parameters"]["Force"];
            };
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Nothing"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    updateNamespace: {
        parameters: {
            query?: {
                /**
                 * @description What to change, as paths separated by commas: `nickname`, `input.focus.type`; `*` for the whole resource. What is named
                 *     is replaced, maps and lists whole; what is named and not in the body, or `null` there, is cleared, and `required` where
                 *     it must be given. Without a mask the body is merged.
                 * @example nickname
                 */
                updateMask?: components["parameters"]["UpdateMask"];
            };
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "nickname": "Acme Corporation"
                 *     }
                 */
                "application/json": components["schemas"]["UpdateNamespace"];
                /**
                 * @example {
                 *       "nickname": "Acme Corporation"
                 *     }
                 */
                "application/merge-patch+json": components["schemas"]["UpdateNamespace"];
            };
        };
        responses: {
            /** @description The Namespace as it is now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Namespace"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listManagers: {
        parameters: {
            query?: {
                /**
                 * @description The most items that a page may have. 0 is 5; what is over 100 is 100. A page ends earlier at 4 MB.
                 * @example 20
                 */
                pageSize?: components["parameters"]["PageSize"];
                /** @description The `nextPageToken` of the page before. It works with the same `filter` and `orderBy` alone; `pageSize` may change. */
                pageToken?: components["parameters"]["PageToken"];
                /**
                 * @description Which items to list; all without it. See the introduction.
                 * @example createTime > "2026-11-21T00:00:00Z"
                 */
                filter?: components["parameters"]["Filter"];
                /**
                 * @description How to order the items. See the introduction.
                 * @example createTime asc
                 */
                orderBy?: components["parameters"]["OrderBy"];
            };
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ManagerList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    createManager: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description Makes the request safe to repeat: for 24 hours, the same request with the same key gets the answer that it got
                 *     first, and makes nothing new. With another body it is refused. Of one API key and one path; only what was
                 *     made is remembered, not what failed. An account stores 250 MB of answers a day (UTC); beyond, a new key is refused as
                 *     `quota_exceeded`.
                 * @example 7c0f2e6a-order-42
                 */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateManager"];
            };
        };
        responses: {
            /** @description The new Manager, in state `PENDING_APPLY`. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "Idempotency-Replayed": components["headers"]["IdempotencyReplayed"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Manager"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    previewManagerDraft: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "source": {
                 *         "type": "FORUM"
                 *       },
                 *       "instructions": {
                 *         "include": [
                 *           {
                 *             "text": "backup",
                 *             "weight": 2.5
                 *           },
                 *           {
                 *             "text": "offsite",
                 *             "weight": 1
                 *           }
                 *         ],
                 *         "threshold": 3
                 *       },
                 *       "mutes": [
                 *         {
                 *           "type": "TERM",
                 *           "value": "hiring"
                 *         }
                 *       ],
                 *       "recent": 100,
                 *       "startTime": "2026-11-20T00:00:00Z"
                 *     }
                 */
                "application/json": components["schemas"]["PreviewDraft"];
            };
        };
        responses: {
            /** @description A result for each post, in their order; of `recent` ones the newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PreviewResults"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getManager: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`. */
                managerId: components["parameters"]["ManagerId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The Manager. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Manager"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteManager: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`. */
                managerId: components["parameters"]["ManagerId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Nothing"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    updateManager: {
        parameters: {
            query?: {
                /**
                 * @description What to change, as paths separated by commas: `nickname`, `input.focus.type`; `*` for the whole resource. What is named
                 *     is replaced, maps and lists whole; what is named and not in the body, or `null` there, is cleared, and `required` where
                 *     it must be given. Without a mask the body is merged.
                 * @example nickname
                 */
                updateMask?: components["parameters"]["UpdateMask"];
            };
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`. */
                managerId: components["parameters"]["ManagerId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "enable": false
                 *     }
                 */
                "application/json": components["schemas"]["UpdateManager"];
                /**
                 * @example {
                 *       "enable": false
                 *     }
                 */
                "application/merge-patch+json": components["schemas"]["UpdateManager"];
            };
        };
        responses: {
            /** @description The Manager as it is now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Manager"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    applyManager: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`. */
                managerId: components["parameters"]["ManagerId"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /** @example {} */
                "application/json": components["schemas"]["Nothing"];
            };
        };
        responses: {
            /** @description The Manager, in state `PENDING_APPLY`. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Manager"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    previewManager: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`. */
                managerId: components["parameters"]["ManagerId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "posts": [
                 *         {
                 *           "type": "FORUM_LINK",
                 *           "time": "2026-11-21T01:00:00.000000Z",
                 *           "id": "hackernews:1795240144",
                 *           "title": "Ask HN: Which backup software for a small team?",
                 *           "text": "Eight laptops and a NAS. Looking for encrypted offsite backups.",
                 *           "url": "https://news.ycombinator.com/item?id=1795240144",
                 *           "subforum": {
                 *             "id": "ask",
                 *             "name": "Ask HN",
                 *             "url": "https://news.ycombinator.com/ask"
                 *           },
                 *           "user": {
                 *             "id": "pat",
                 *             "name": "pat",
                 *             "url": "https://news.ycombinator.com/user?id=pat"
                 *           }
                 *         }
                 *       ],
                 *       "instructions": {
                 *         "include": [
                 *           {
                 *             "text": "backup",
                 *             "weight": 2.5
                 *           },
                 *           {
                 *             "text": "offsite",
                 *             "weight": 1
                 *           }
                 *         ],
                 *         "threshold": 3
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["Preview"];
            };
        };
        responses: {
            /** @description A result for each post, in their order; of `recent` ones the newest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PreviewResults"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    backfillManager: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`. */
                managerId: components["parameters"]["ManagerId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "notify": false
                 *     }
                 */
                "application/json": components["schemas"]["CreateBackfill"];
            };
        };
        responses: {
            /** @description How far back the posts of each feed will be had. None where the Manager watches nothing. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Backfill"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getManagerFeeds: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`. */
                managerId: components["parameters"]["ManagerId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The feeds. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FeedList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listScans: {
        parameters: {
            query?: {
                /**
                 * @description The most items that a page may have. 0 is 5; what is over 100 is 100. A page ends earlier at 4 MB.
                 * @example 20
                 */
                pageSize?: components["parameters"]["PageSize"];
                /** @description The `nextPageToken` of the page before. It works with the same `filter` and `orderBy` alone; `pageSize` may change. */
                pageToken?: components["parameters"]["PageToken"];
                /**
                 * @description Which items to list; all without it. See the introduction.
                 * @example createTime > "2026-11-21T00:00:00Z"
                 */
                filter?: components["parameters"]["Filter"];
                /**
                 * @description How to order the items. See the introduction.
                 * @example createTime asc
                 */
                orderBy?: components["parameters"]["OrderBy"];
            };
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`, or `-` for all Managers of the Namespace. */
                managerId: components["parameters"]["ManagerIdOrAny"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScanList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getScan: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`. */
                managerId: components["parameters"]["ManagerId"];
                /** @description The last segment of the Scan's `name`. */
                scanId: components["parameters"]["ScanId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The Scan. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Scan"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    updateScan: {
        parameters: {
            query?: {
                /**
                 * @description What to change, as paths separated by commas: `nickname`, `input.focus.type`; `*` for the whole resource. What is named
                 *     is replaced, maps and lists whole; what is named and not in the body, or `null` there, is cleared, and `required` where
                 *     it must be given. Without a mask the body is merged.
                 * @example nickname
                 */
                updateMask?: components["parameters"]["UpdateMask"];
            };
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`. */
                managerId: components["parameters"]["ManagerId"];
                /** @description The last segment of the Scan's `name`. */
                scanId: components["parameters"]["ScanId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "value": false,
                 *       "labels": [
                 *         "competitor"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["UpdateScan"];
                /**
                 * @example {
                 *       "value": false,
                 *       "labels": [
                 *         "competitor"
                 *       ]
                 *     }
                 */
                "application/merge-patch+json": components["schemas"]["UpdateScan"];
            };
        };
        responses: {
            /** @description The Scan as it is now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Scan"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listConnections: {
        parameters: {
            query?: {
                /**
                 * @description The most items that a page may have. 0 is 5; what is over 100 is 100. A page ends earlier at 4 MB.
                 * @example 20
                 */
                pageSize?: components["parameters"]["PageSize"];
                /** @description The `nextPageToken` of the page before. It works with the same `filter` and `orderBy` alone; `pageSize` may change. */
                pageToken?: components["parameters"]["PageToken"];
                /**
                 * @description Which items to list; all without it. See the introduction.
                 * @example createTime > "2026-11-21T00:00:00Z"
                 */
                filter?: components["parameters"]["Filter"];
                /**
                 * @description How to order the items. See the introduction.
                 * @example createTime asc
                 */
                orderBy?: components["parameters"]["OrderBy"];
            };
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConnectionList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    createConnection: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description Makes the request safe to repeat: for 24 hours, the same request with the same key gets the answer that it got
                 *     first, and makes nothing new. With another body it is refused. Of one API key and one path; only what was
                 *     made is remembered, not what failed. An account stores 250 MB of answers a day (UTC); beyond, a new key is refused as
                 *     `quota_exceeded`.
                 * @example 7c0f2e6a-order-42
                 */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "nickname": "Our hook",
                 *       "type": "HTTP_CONNECTION",
                 *       "url": "https://hooks.example.com/earshot",
                 *       "method": "POST",
                 *       "headers": {
                 *         "X-Webhook-Secret": "<WEBHOOK_SECRET>"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["CreateConnection"];
            };
        };
        responses: {
            /** @description The new Connection. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "Idempotency-Replayed": components["headers"]["IdempotencyReplayed"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Connection"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getConnection: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`. */
                connectionId: components["parameters"]["ConnectionId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The Connection. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Connection"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteConnection: {
        parameters: {
            query?: {
                /** @description Whether to delete all the same what holds, or is named by, others. */
                force?: components["parameters"]["Force"];
            };
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`. */
                connectionId: components["parameters"]["ConnectionId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Nothing"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    updateConnection: {
        parameters: {
            query?: {
                /**
                 * @description What to change, as paths separated by commas: `nickname`, `input.focus.type`; `*` for the whole resource. What is named
                 *     is replaced, maps and lists whole; what is named and not in the body, or `null` there, is cleared, and `required` where
                 *     it must be given. Without a mask the body is merged.
                 * @example nickname
                 */
                updateMask?: components["parameters"]["UpdateMask"];
            };
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`. */
                connectionId: components["parameters"]["ConnectionId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "state": "DISABLED"
                 *     }
                 */
                "application/json": components["schemas"]["UpdateConnection"];
                /**
                 * @example {
                 *       "state": "DISABLED"
                 *     }
                 */
                "application/merge-patch+json": components["schemas"]["UpdateConnection"];
            };
        };
        responses: {
            /** @description The Connection as it is now. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Connection"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    enableConnection: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`. */
                connectionId: components["parameters"]["ConnectionId"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /** @example {} */
                "application/json": components["schemas"]["Nothing"];
            };
        };
        responses: {
            /** @description The Connection, in state `ACTIVE`. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Connection"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getNamespaceStats: {
        parameters: {
            query: {
                /** @description The beginning of the span. The point that it falls into is the first, and whole. */
                startTime: components["parameters"]["StartTime"];
                /** @description The end of the span, which is not in it. Now, without it. */
                endTime?: components["parameters"]["EndTime"];
                /**
                 * @description How much time a point stands for; an hour, without it. A span of more than 1,000 points is refused as `too_many`.
                 *     Points of a minute are kept for 2 days, those of an hour for 40, those of a day for 400.
                 */
                interval?: components["parameters"]["Interval"];
            };
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One point for each interval of the span. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Stats"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getManagerStats: {
        parameters: {
            query: {
                /** @description The beginning of the span. The point that it falls into is the first, and whole. */
                startTime: components["parameters"]["StartTime"];
                /** @description The end of the span, which is not in it. Now, without it. */
                endTime?: components["parameters"]["EndTime"];
                /**
                 * @description How much time a point stands for; an hour, without it. A span of more than 1,000 points is refused as `too_many`.
                 *     Points of a minute are kept for 2 days, those of an hour for 40, those of a day for 400.
                 */
                interval?: components["parameters"]["Interval"];
            };
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`. */
                managerId: components["parameters"]["ManagerId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One point for each interval of the span. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Stats"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getConnectionStats: {
        parameters: {
            query: {
                /** @description The beginning of the span. The point that it falls into is the first, and whole. */
                startTime: components["parameters"]["StartTime"];
                /** @description The end of the span, which is not in it. Now, without it. */
                endTime?: components["parameters"]["EndTime"];
                /**
                 * @description How much time a point stands for; an hour, without it. A span of more than 1,000 points is refused as `too_many`.
                 *     Points of a minute are kept for 2 days, those of an hour for 40, those of a day for 400.
                 */
                interval?: components["parameters"]["Interval"];
            };
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`. */
                connectionId: components["parameters"]["ConnectionId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One point for each interval of the span. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Stats"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    testConnection: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`. */
                connectionId: components["parameters"]["ConnectionId"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /** @example {} */
                "application/json": components["schemas"]["Nothing"];
            };
        };
        responses: {
            /** @description What came of it. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TestResult"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    replayDeliveries: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`. */
                connectionId: components["parameters"]["ConnectionId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "startTime": "2026-11-20T00:00:00Z",
                 *       "states": [
                 *         "EXHAUSTED"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["CreateReplay"];
            };
        };
        responses: {
            /** @description The Replay, which has begun. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Replay"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listAuditEvents: {
        parameters: {
            query?: {
                /**
                 * @description The most items that a page may have. 0 is 5; what is over 100 is 100. A page ends earlier at 4 MB.
                 * @example 20
                 */
                pageSize?: components["parameters"]["PageSize"];
                /** @description The `nextPageToken` of the page before. It works with the same `filter` and `orderBy` alone; `pageSize` may change. */
                pageToken?: components["parameters"]["PageToken"];
                /**
                 * @description Which items to list; all without it. See the introduction.
                 * @example createTime > "2026-11-21T00:00:00Z"
                 */
                filter?: components["parameters"]["Filter"];
                /**
                 * @description How to order the items. See the introduction.
                 * @example createTime asc
                 */
                orderBy?: components["parameters"]["OrderBy"];
            };
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`, or `-` for the whole account. */
                namespaceId: components["parameters"]["NamespaceIdOrAny"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditEventList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listReplays: {
        parameters: {
            query?: {
                /**
                 * @description The most items that a page may have. 0 is 5; what is over 100 is 100. A page ends earlier at 4 MB.
                 * @example 20
                 */
                pageSize?: components["parameters"]["PageSize"];
                /** @description The `nextPageToken` of the page before. It works with the same `filter` and `orderBy` alone; `pageSize` may change. */
                pageToken?: components["parameters"]["PageToken"];
                /**
                 * @description Which items to list; all without it. See the introduction.
                 * @example createTime > "2026-11-21T00:00:00Z"
                 */
                filter?: components["parameters"]["Filter"];
                /**
                 * @description How to order the items. See the introduction.
                 * @example createTime asc
                 */
                orderBy?: components["parameters"]["OrderBy"];
            };
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`. */
                connectionId: components["parameters"]["ConnectionId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReplayList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getReplay: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`. */
                connectionId: components["parameters"]["ConnectionId"];
                /** @description The last segment of the Replay's `name`. */
                replayId: components["parameters"]["ReplayId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The Replay. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Replay"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    cancelReplay: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`. */
                connectionId: components["parameters"]["ConnectionId"];
                /** @description The last segment of the Replay's `name`. */
                replayId: components["parameters"]["ReplayId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is over. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Nothing"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    listDeliveries: {
        parameters: {
            query?: {
                /**
                 * @description The most items that a page may have. 0 is 5; what is over 100 is 100. A page ends earlier at 4 MB.
                 * @example 20
                 */
                pageSize?: components["parameters"]["PageSize"];
                /** @description The `nextPageToken` of the page before. It works with the same `filter` and `orderBy` alone; `pageSize` may change. */
                pageToken?: components["parameters"]["PageToken"];
                /**
                 * @description Which items to list; all without it. See the introduction.
                 * @example createTime > "2026-11-21T00:00:00Z"
                 */
                filter?: components["parameters"]["Filter"];
                /**
                 * @description How to order the items. See the introduction.
                 * @example createTime asc
                 */
                orderBy?: components["parameters"]["OrderBy"];
            };
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`, or `-` for all Connections of the Namespace. */
                connectionId: components["parameters"]["ConnectionIdOrAny"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryList"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getDelivery: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`. */
                connectionId: components["parameters"]["ConnectionId"];
                /** @description The last segment of the delivery's `name`. */
                deliveryId: components["parameters"]["DeliveryId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The delivery. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryWithAttempts"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    retryDelivery: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Connection's `name`. */
                connectionId: components["parameters"]["ConnectionId"];
                /** @description The last segment of the delivery's `name`. */
                deliveryId: components["parameters"]["DeliveryId"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /** @example {} */
                "application/json": components["schemas"]["Nothing"];
            };
        };
        responses: {
            /** @description The delivery, which is due. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Delivery"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            413: components["responses"]["TooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getScansAsAtom: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The `ETag` of an earlier answer. While it is still the same, the answer is 304 and has no body.
                 * @example W/"0123456789abcdef"
                 */
                "if-none-match"?: components["parameters"]["IfNoneMatch"];
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`. */
                managerId: components["parameters"]["ManagerId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The feed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    ETag: components["headers"]["ETag"];
                    "Last-Modified": components["headers"]["LastModified"];
                    [name: string]: unknown;
                };
                content: {
                    /** @example <?xml version="1.0" encoding="utf-8"?> */
                    "application/atom+xml": string;
                };
            };
            /** @description What was asked about is still the same. */
            304: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            /** @description The API key is missing, or does not work (any more). */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-Test": components["headers"]["XTest"];
                    "WWW-Authenticate": components["headers"]["WwwAuthenticateReader"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "code": 401,
                     *       "message": "api key missing or invalid"
                     *     }
                     */
                    "application/json": components["schemas"]["Error"];
                };
            };
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getScansAsJsonFeed: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The `ETag` of an earlier answer. While it is still the same, the answer is 304 and has no body.
                 * @example W/"0123456789abcdef"
                 */
                "if-none-match"?: components["parameters"]["IfNoneMatch"];
                /**
                 * @description `true` or `yes`, in any case, turn test mode on: the request is checked and executed for real, its answer is the one
                 *     that the real call would give, and nothing is stored or sent. `false` and `no` turn it off.
                 * @example true
                 */
                "x-test"?: components["parameters"]["XTest"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path: {
                /** @description The last segment of the Namespace's `name`. */
                namespaceId: components["parameters"]["NamespaceId"];
                /** @description The last segment of the Manager's `name`. */
                managerId: components["parameters"]["ManagerId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The feed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    "X-Test": components["headers"]["XTest"];
                    ETag: components["headers"]["ETag"];
                    "Last-Modified": components["headers"]["LastModified"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "version": "https://jsonfeed.org/version/1.1",
                     *       "title": "who looks for a backup?",
                     *       "items": []
                     *     }
                     */
                    "application/feed+json": Record<string, never>;
                };
            };
            /** @description What was asked about is still the same. */
            304: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-RateLimit-Limit": components["headers"]["RateLimitLimit"];
                    "X-RateLimit-Remaining": components["headers"]["RateLimitRemaining"];
                    "X-RateLimit-Reset": components["headers"]["RateLimitReset"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            /** @description The API key is missing, or does not work (any more). */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    "X-Test": components["headers"]["XTest"];
                    "WWW-Authenticate": components["headers"]["WwwAuthenticateReader"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "code": 401,
                     *       "message": "api key missing or invalid"
                     *     }
                     */
                    "application/json": components["schemas"]["Error"];
                };
            };
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["Timeout"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    getDocs: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The page. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    [name: string]: unknown;
                };
                content: {
                    /** @example <!doctype html> */
                    "text/html": string;
                };
            };
            408: components["responses"]["Timeout"];
            431: components["responses"]["HeadTooLarge"];
        };
    };
    getOpenapiJson: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The `ETag` of an earlier answer. While it is still the same, the answer is 304 and has no body.
                 * @example W/"0123456789abcdef"
                 */
                "if-none-match"?: components["parameters"]["IfNoneMatch"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The document. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "openapi": "3.0.3"
                     *     }
                     */
                    "application/json": Record<string, never>;
                };
            };
            304: components["responses"]["NotModified"];
            408: components["responses"]["Timeout"];
            431: components["responses"]["HeadTooLarge"];
        };
    };
    getOpenapiYaml: {
        parameters: {
            query?: never;
            header?: {
                /**
                 * @description The `ETag` of an earlier answer. While it is still the same, the answer is 304 and has no body.
                 * @example W/"0123456789abcdef"
                 */
                "if-none-match"?: components["parameters"]["IfNoneMatch"];
                /**
                 * @description Up to 128 visible ASCII characters, which the answer repeats. Without it, or when it is anything else, the service
                 *     makes one up.
                 * @example 5f0c1f7e-import-17
                 */
                "x-request-id"?: components["parameters"]["XRequestId"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The document. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["XRequestId"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "openapi": "3.0.3"
                     *     }
                     */
                    "application/yaml": Record<string, never>;
                };
            };
            304: components["responses"]["NotModified"];
            408: components["responses"]["Timeout"];
            431: components["responses"]["HeadTooLarge"];
        };
    };
}
