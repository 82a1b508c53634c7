-- Answers below a forum's post, for Managers that ask for comments.
ALTER TABLE posts DROP CONSTRAINT posts_type_check;
ALTER TABLE posts ADD CONSTRAINT posts_type_check
    CHECK (type IN ('FORUM_LINK', 'FORUM_COMMENT', 'MICROBLOG_TWEET', 'NETWORK_POST'));
