DROP FUNCTION analyze_grown();
