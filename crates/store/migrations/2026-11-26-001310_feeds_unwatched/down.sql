DROP INDEX feeds_unwatched_idx;
